import { readFileSync } from 'node:fs';
import { CommanderError } from 'commander';
import { CliError } from './output/cli-error.ts';
import { createProgram } from './program.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

// A reader that went away (`aenv ls | head -1`) is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

try {
  await createProgram(version).parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
// Standard input may still be open on a terminal or a pipe; nothing is waited for any more.
process.exit();

function report(error: unknown): number {
  // Commander has printed its message; a wrong call is 2, help and version are 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof CliError) {
    console.error(`aenv: ${error.message}`);
    if (error.remediation !== undefined) console.error(`      ${error.remediation}`);
    return error.exitCode;
  }
  console.error('aenv: unexpected fault, please report it:');
  console.error(error);
  return 1;
}
