import { z } from '@hono/zod-openapi';
import { LogLevel } from './observation.ts';

/** Answer to the start of a build. */
export const TemplateBuildStarted = z
  .object({ templateID: z.string(), buildID: z.string() })
  .openapi('TemplateBuildStarted');
export type TemplateBuildStarted = z.output<typeof TemplateBuildStarted>;

export const BuildLogEntry = z
  .object({ timestamp: z.string().openapi({ format: 'date-time' }), level: LogLevel, message: z.string() })
  .openapi('BuildLogEntry');
export type BuildLogEntry = z.output<typeof BuildLogEntry>;

export const TemplateBuildInfo = z
  .object({
    templateID: z.string(),
    buildID: z.string(),
    status: z.enum(['building', 'waiting', 'ready', 'error']),
    logs: z.array(z.string()).openapi({ description: 'messages of the entries' }),
    logEntries: z.array(BuildLogEntry),
    reason: z.object({ message: z.string() }).optional().openapi({ description: 'why the build failed' }),
  })
  .openapi('TemplateBuildInfo');
export type TemplateBuildInfo = z.output<typeof TemplateBuildInfo>;

const MAX_ENTRIES = 100;
const number = (digits: number) =>
  z
    .string()
    .regex(new RegExp(`^\\d{1,${digits}}$`), 'must be a whole number')
    .transform(Number)
    .optional();

/** Query of GET /templates/{templateID}/builds/{buildID}/status. */
export const TemplateBuildStatusQuery = z.strictObject({
  logsOffset: number(9).openapi({ type: 'integer', description: 'number of log entries to leave out; 0 when absent' }),
  limit: number(3)
    .pipe(z.int().min(0).max(MAX_ENTRIES, `must be at most ${MAX_ENTRIES}`).optional())
    .openapi({ type: 'integer', description: `0 to ${MAX_ENTRIES}; ${MAX_ENTRIES} when absent` }),
  level: LogLevel.optional().openapi({ description: 'the least level' }),
});
