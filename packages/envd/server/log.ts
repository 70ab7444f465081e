/** Log lines of envd go to stderr, which is the guest's console. Secrets never go into `fields`. */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** One JSON object a line. */
export const stderrLog: Log = (level, message, fields) => {
  if (level === 'debug') return;
  process.stderr.write(`${JSON.stringify({ logger: 'envd', level, message, ...fields })}\n`);
};

/** What an unexpected error says in the log. */
export function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
