import { z } from '@hono/zod-openapi';

/** Answer of create and connect: what a client needs to reach the sandbox. */
export const Sandbox = z
  .object({
    sandboxID: z.string().openapi({ example: 'i3k9q0v7c1b8z5x2m4n6a' }),
    templateID: z.string(),
    clientID: z.string().openapi({ description: 'kept for old clients' }),
    envdVersion: z.string().openapi({ example: '0.6.13' }),
    alias: z.string().optional(),
    envdAccessToken: z.string().optional().openapi({ description: 'for X-Access-Token; only of secured sandboxes' }),
    trafficAccessToken: z
      .string()
      .optional()
      .openapi({ description: 'for e2b-traffic-access-token; only where public traffic is off' }),
    domain: z.string().optional().openapi({ description: 'host names are PORT-SANDBOXID.domain' }),
  })
  .openapi('Sandbox');
export type Sandbox = z.output<typeof Sandbox>;

const listed = {
  sandboxID: z.string(),
  templateID: z.string(),
  clientID: z.string(),
  startedAt: z.string().openapi({ format: 'date-time' }),
  endAt: z.string().openapi({ format: 'date-time', description: 'when its time to live is over' }),
  cpuCount: z.int(),
  memoryMB: z.int(),
  diskSizeMB: z.int(),
  state: z.enum(['running', 'paused']),
  envdVersion: z.string(),
  alias: z.string().optional(),
  metadata: z.record(z.string(), z.string()).optional(),
};

export const ListedSandbox = z.object(listed).openapi('ListedSandbox');
export type ListedSandbox = z.output<typeof ListedSandbox>;

export const SandboxDetail = z
  .object({
    ...listed,
    domain: z.string().optional(),
    envdAccessToken: z.string().optional(),
    allowInternetAccess: z.boolean().nullable().openapi({ description: 'null: not said at creation' }),
    network: z.object({
      allowPublicTraffic: z.boolean(),
      maskRequestHost: z.string().optional(),
      httpsPorts: z.array(z.int()).optional(),
    }),
    lifecycle: z.object({ onTimeout: z.enum(['kill', 'pause']), autoResume: z.boolean() }),
  })
  .openapi('SandboxDetail');
export type SandboxDetail = z.output<typeof SandboxDetail>;
