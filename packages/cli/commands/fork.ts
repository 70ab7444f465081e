import { type Command, InvalidArgumentError } from 'commander';
import { openControlPlane } from '../client/session.ts';
import { printable } from '../output/table.ts';
import { decimal, globalFlags, timeoutOption } from './options.ts';

const MAX = 100;

/** `fork`. */
export function registerFork(program: Command): void {
  program
    .command('fork')
    .summary('make sandboxes that go on from where one is')
    .description(
      'Captures a running sandbox, which goes on at once, and starts children with its memory, processes and disk. Prints the ids of the children.',
    )
    .argument('<id>', 'id of the sandbox')
    .option('-n, --count <number>', 'how many children', parseCount, 1)
    .addOption(timeoutOption())
    .action(async (id: string, flags: { count: number; timeout: number }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      for (const { sandbox, error } of await api.fork(id, flags.count, flags.timeout)) {
        if (sandbox !== undefined) {
          console.log(sandbox.sandboxID);
          continue;
        }
        console.error(`aenv: ${printable(error?.message ?? 'a child could not be started')}`);
        if (error?.remediation !== undefined) console.error(`      ${printable(error.remediation)}`);
        process.exitCode = 1;
      }
    });
}

function parseCount(text: string): number {
  const value = decimal(text);
  if (value === undefined || value < 1 || value > MAX) {
    throw new InvalidArgumentError(`Must be a whole number from 1 to ${MAX}.`);
  }
  return value;
}
