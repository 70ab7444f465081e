import { z } from '@hono/zod-openapi';

const timestamp = z.string().openapi({ format: 'date-time' });

export const SandboxMetric = z
  .object({
    timestamp,
    timestampUnix: z.int().openapi({ description: 'seconds since the epoch' }),
    cpuCount: z.int(),
    cpuUsedPct: z.number().openapi({ description: 'per cent of all processors together' }),
    memUsed: z.int().openapi({ description: 'bytes' }),
    memTotal: z.int().openapi({ description: 'bytes' }),
    memCache: z.int().openapi({ description: 'bytes' }),
    diskUsed: z.int().openapi({ description: 'bytes' }),
    diskTotal: z.int().openapi({ description: 'bytes' }),
  })
  .openapi('SandboxMetric');
export type SandboxMetric = z.output<typeof SandboxMetric>;

export const SandboxesWithMetrics = z
  .object({ sandboxes: z.record(z.string(), SandboxMetric) })
  .openapi('SandboxesWithMetrics');
export type SandboxesWithMetrics = z.output<typeof SandboxesWithMetrics>;

export const LogLevel = z.enum(['debug', 'info', 'warn', 'error']);

export const SandboxLogEntry = z
  .object({ timestamp, level: LogLevel, message: z.string(), fields: z.record(z.string(), z.string()) })
  .openapi('SandboxLogEntry');
export type SandboxLogEntry = z.output<typeof SandboxLogEntry>;

export const SandboxLogs = z
  .object({
    logs: z.array(z.object({ timestamp, line: z.string().openapi({ description: 'a JSON object as text' }) })),
    logEntries: z.array(SandboxLogEntry),
  })
  .openapi('SandboxLogs');
export type SandboxLogs = z.output<typeof SandboxLogs>;

export const SandboxLogsV2 = z.object({ logs: z.array(SandboxLogEntry) }).openapi('SandboxLogsV2Response');
export type SandboxLogsV2 = z.output<typeof SandboxLogsV2>;

const MAX_LOGS = 1000;
const MAX_SANDBOXES = 100;

/** A whole number that goes into a Date. */
const moment = (unit: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `must be a whole number of ${unit} since the epoch`)
    .transform(Number)
    .optional()
    .openapi({ type: 'integer', description: `${unit} since the epoch` });

const limit = z
  .string()
  .regex(/^\d{1,4}$/, `must be a whole number from 0 to ${MAX_LOGS}`)
  .transform(Number)
  .pipe(z.int().min(0).max(MAX_LOGS, `must be at most ${MAX_LOGS}`))
  .optional()
  .openapi({ type: 'integer', description: `0 to ${MAX_LOGS}; ${MAX_LOGS} when absent` });

/** Query of GET /sandboxes/{sandboxID}/metrics. */
export const SandboxMetricsQuery = z.strictObject({ start: moment('seconds'), end: moment('seconds') });

/** Query of GET /sandboxes/metrics. */
export const SandboxesMetricsQuery = z.strictObject({
  sandbox_ids: z
    .string()
    .transform((text) => [...new Set(text.split(',').map((id) => id.trim()))].filter((id) => id !== ''))
    .pipe(z.array(z.string()).max(MAX_SANDBOXES, `must name at most ${MAX_SANDBOXES} sandboxes`))
    .openapi({ type: 'string', description: `comma list of at most ${MAX_SANDBOXES} ids` }),
});

/** Query of GET /sandboxes/{sandboxID}/logs. */
export const SandboxLogsQuery = z.strictObject({ start: moment('milliseconds'), limit });

/** Query of GET /v2/sandboxes/{sandboxID}/logs. */
export const SandboxLogsV2Query = z.strictObject({
  cursor: moment('milliseconds'),
  limit,
  direction: z.enum(['forward', 'backward']).optional().openapi({ description: 'forward when absent' }),
  level: LogLevel.optional().openapi({ description: 'the least level' }),
  search: z.string().max(1000).optional().openapi({ description: 'part of the message, in any case' }),
});
