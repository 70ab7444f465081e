import type { LogFields, Logger } from '@aenv/platform/observability/logger.ts';
import { type DestinationStream, destination, type Logger as Pino, pino, stdTimeFunctions } from 'pino';
import { redact, redactText } from './redact.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LoggerOptions {
  readonly level: LogLevel;
  /** file that lines are appended to (0600); standard output otherwise */
  readonly file?: string | undefined;
}

/** The logger of a node: one JSON object a line with `level`, `time` (RFC 3339), `msg` and the fields. */
export function createLogger(options: LoggerOptions): Logger {
  // Synchronous: the last lines before a crash are those that matter.
  const stream = destination({ dest: options.file ?? 1, append: true, mkdir: true, mode: 0o600, sync: true });
  // A log that cannot be written (full disk, closed pipe) must not end the daemon.
  stream.on('error', () => {});
  return createLoggerOn(stream, options.level);
}

/** The same on any stream. */
export function createLoggerOn(stream: DestinationStream, level: LogLevel): Logger {
  return wrap(
    pino(
      {
        level,
        base: null,
        timestamp: stdTimeFunctions.isoTime,
        formatters: { level: (label) => ({ level: label }) },
      },
      stream,
    ),
  );
}

function wrap(target: Pino): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (target.isLevelEnabled(level)) target[level](redact(fields), redactText(message));
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => wrap(target.child({ ...(redact(fields) as object) })),
  };
}
