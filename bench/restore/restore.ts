import { BareMachines } from '../bare/bare-machines.ts';
import { capturedMachine } from '../bare/captured-machine.ts';
import type { Measurement } from '../measurement.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { coldRows } from './cold.ts';
import { warmRows } from './warm.ts';

/** How long it takes from a template to a command in a sandbox of its own. */
export const restore: Measurement = {
  name: 'restore',
  about: 'create to the first byte of `echo ok`, over the same exec in a bare restore; from a warm pool',
  limitMs: 8 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon();
    {
      // The first one has the template captured.
      await using _first = await createSandbox(daemon);
    }
    await using bare = await BareMachines.open(bench, await capturedMachine(daemon), 1);
    const rows = await coldRows(bench, daemon, bare);
    return [...rows, ...(await warmRows(bench))];
  },
};
