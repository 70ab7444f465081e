import { z } from '@hono/zod-openapi';
import { EnvVars, Metadata, Timeout } from './bounds.ts';
import { unserved } from './unserved.ts';

const Network = z.strictObject({
  allowPublicTraffic: z
    .boolean()
    .nullish()
    .openapi({ description: 'false: ports are reachable with the traffic token only; needs a secured sandbox' }),
  maskRequestHost: z
    .string()
    .max(255)
    .refine(isHostTemplate, `must be a host name with an optional port; \${PORT} stands for the port`)
    .nullish()
    .openapi({ description: 'Host header that servers in the sandbox see', example: `localhost:\${PORT}` }),
  httpsPorts: z
    .array(z.int().min(1).max(65535))
    .max(64)
    .nullish()
    .openapi({ description: 'ports whose servers speak TLS' }),
  allowOut: unserved('egress rules'),
  denyOut: unserved('egress rules'),
  rules: unserved('egress rules'),
  egressProxy: unserved('egress proxy'),
});

const shared = {
  templateID: z
    .string()
    .openapi({ description: 'id, alias, or namespace/alias; `:tag` where needed', example: 'base' }),
  metadata: Metadata.nullish(),
  envVars: EnvVars.nullish(),
  allow_internet_access: z.boolean().nullish().openapi({ description: 'false: nothing outside is reachable' }),
  network: Network.nullish(),
  autoPause: z
    .boolean()
    .nullish()
    .openapi({ description: 'true: the end of the time to live pauses, else it deletes' }),
  autoPauseMemory: z.boolean().nullish().openapi({
    description: 'false: a pause at that end keeps the disk alone; needs autoPause, excludes autoResume',
  }),
  autoResume: z
    .strictObject({ enabled: z.boolean().nullish().openapi({ description: 'true: traffic resumes it while paused' }) })
    .nullish(),
  mcp: unserved('MCP gateway'),
  iam: unserved('workload identity'),
  volumeMounts: unserved('volumes'),
};

/** Body of POST /sandboxes. */
export const NewSandbox = z
  .strictObject({
    ...shared,
    timeout: Timeout.nullish().openapi({ description: 'time to live in seconds; 15 when absent' }),
    secure: z.boolean().nullish().openapi({ description: 'whether the agent in the sandbox asks for an access token' }),
  })
  .openapi('NewSandbox');
export type NewSandbox = z.output<typeof NewSandbox>;

/** Body of POST /v2/sandboxes: always secured. */
export const NewSandboxV2 = z
  .strictObject({
    ...shared,
    timeout: Timeout.nullish().openapi({ description: 'time to live in seconds; 300 when absent' }),
    secure: z
      .literal(true, 'sandboxes of this route are always secured')
      .nullish()
      .openapi({ description: 'always true here' }),
  })
  .openapi('NewSandboxV2');
export type NewSandboxV2 = z.output<typeof NewSandboxV2>;

/** Whether the text is `host` or `host:port` once `${PORT}` is filled in: it becomes a header. */
function isHostTemplate(text: string): boolean {
  const host = text.replaceAll(/\$\{PORT\}/g, '1');
  return /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$/.test(host);
}
