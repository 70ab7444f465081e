import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** Where a command prints: results to `out`, progress and problems to `err`. Both take whole lines. */
export interface Output {
  out(line: string): void;
  err(line: string): void;
}

export const processOutput: Output = {
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
};

/** A problem with its remedy, as every command of the host prints it. */
export function printError(output: Output, thrown: unknown): void {
  const error = AenvError.from(thrown);
  if (error.code === 'internal') {
    // A fault of ours: the stack is what a report needs.
    output.err(`aenv: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`);
  } else {
    output.err(`aenv: ${error.message}`);
  }
  output.err(`      ${error.remediation}`);
}

/** `1.4 s`, `2 min 05 s` */
export function formatDuration(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** `512 MiB`, `79.8 GiB` */
export function formatBytes(bytes: number): string {
  return bytes < 2 ** 30 ? `${Math.round(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
