import { z } from '@hono/zod-openapi';

const time = () => z.string().openapi({ format: 'date-time' });

const named = {
  templateID: z.string().openapi({ example: 'x7c1b8z5x2m4n6a0k9q3' }),
  public: z.boolean(),
  aliases: z.array(z.string()).openapi({ example: ['base'] }),
  names: z.array(z.string()).openapi({ description: 'aliases with their namespace', example: ['default/base'] }),
  createdAt: time(),
  updatedAt: time(),
  lastSpawnedAt: time().nullable(),
  spawnCount: z.int(),
};

const size = { cpuCount: z.int(), memoryMB: z.int(), diskSizeMB: z.int(), envdVersion: z.string() };
const BuildStatus = z.enum(['building', 'waiting', 'ready', 'error']);

export const Template = z
  .object({
    ...named,
    ...size,
    buildID: z.string(),
    buildCount: z.int(),
    buildStatus: BuildStatus,
    createdBy: z.null(),
  })
  .openapi('Template');
export type Template = z.output<typeof Template>;

export const TemplateWithBuilds = z
  .object({
    ...named,
    builds: z.array(
      z.object({
        ...size,
        buildID: z.string(),
        status: BuildStatus,
        createdAt: time(),
        updatedAt: time(),
        finishedAt: time().optional(),
      }),
    ),
  })
  .openapi('TemplateWithBuilds');
export type TemplateWithBuilds = z.output<typeof TemplateWithBuilds>;

/** Answer of GET /templates/aliases/{alias}. */
export const TemplateAlias = z.object({ templateID: z.string(), public: z.boolean() }).openapi('TemplateAlias');
export type TemplateAlias = z.output<typeof TemplateAlias>;
