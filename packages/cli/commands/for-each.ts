import { ApiError } from '../client/control-plane.ts';
import { printable } from '../output/table.ts';

/**
 * Does something with each of the things that a command names. One that the server refuses is told of with what to do
 * about it, the others are done all the same, and the exit code is 1.
 */
export async function forEachNamed(names: readonly string[], act: (name: string) => Promise<void>): Promise<void> {
  for (const name of names) {
    try {
      await act(name);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      console.error(`aenv: ${printable(name)}: ${printable(error.message)}`);
      if (error.remediation !== undefined) console.error(`      ${printable(error.remediation)}`);
      process.exitCode = 1;
    }
  }
}
