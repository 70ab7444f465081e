import { writeSync } from 'node:fs';

const STDERR = 2;

/** Log lines of envd go to stderr, which is the guest's console. Secrets never go into `fields`. */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** One JSON object a line, written past the stream of the runtime, which a guest would have to load for it. */
export const stderrLog: Log = (level, message, fields) => {
  if (level === 'debug') return;
  try {
    writeSync(STDERR, `${JSON.stringify({ logger: 'envd', level, message, ...fields })}\n`);
  } catch {
    // A console that takes nothing is no reason to end.
  }
};

/** What an unexpected error says in the log. */
export function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
