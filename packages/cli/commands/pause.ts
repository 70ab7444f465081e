import type { Command } from 'commander';
import { openControlPlane } from '../client/session.ts';
import { forEachNamed } from './for-each.ts';
import { globalFlags, timeoutOption } from './options.ts';

/** `pause`, `resume`. */
export function registerPause(program: Command): void {
  program
    .command('pause')
    .summary('stop sandboxes and keep all of them')
    .description(
      'Keeps memory, processes and disk of sandboxes and gives back what they hold of the host. A paused sandbox has no end of its time to live.',
    )
    .argument('<id...>', 'ids of sandboxes')
    .option('--disk', 'keep the disk alone: the next start boots it, and what ran is gone')
    .action(async (ids: string[], flags: { disk?: boolean }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      await forEachNamed(ids, async (id) => {
        await api.pause(id, flags.disk !== true);
        console.log(id);
      });
    });

  program
    .command('resume')
    .summary('let a paused sandbox go on where it was')
    .argument('<id>', 'id of the sandbox')
    .addOption(timeoutOption())
    .option('--boot', 'boot its disk instead of going on with its memory')
    .action(async (id: string, flags: { timeout: number; boot?: boolean }, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      console.log((await api.resume(id, flags.timeout, flags.boot !== true)).sandboxID);
    });
}
