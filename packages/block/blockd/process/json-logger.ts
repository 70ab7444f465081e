import { writeSync } from 'node:fs';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { LogFields, Logger } from '@aenv/platform/observability/logger.ts';

/** Lines in the form of the node's log: one JSON object with `level`, `time`, `msg` and the fields. */
export function jsonLogger(fd: number, base: LogFields = {}): Logger {
  const at =
    (level: string) =>
    (msg: string, fields: LogFields = {}): void => {
      const line = { level, time: new Date().toISOString(), ...base, ...plain(fields), msg };
      try {
        writeSync(fd, `${JSON.stringify(line)}\n`);
      } catch {
        // A full disk must not end what serves disks.
      }
    };
  return {
    debug: () => {},
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => jsonLogger(fd, { ...base, ...fields }),
  };
}

function plain(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? describe(value) : value]),
  );
}

function describe(error: Error): LogFields {
  return {
    message: error.message,
    ...(error instanceof AenvError ? { code: error.code } : {}),
    stack: error.stack,
    ...(error.cause instanceof Error ? { cause: describe(error.cause) } : {}),
  };
}
