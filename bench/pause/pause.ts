import { BareMachines } from '../bare/bare-machines.ts';
import { capturedMachine } from '../bare/captured-machine.ts';
import type { Measurement } from '../measurement.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { diskRows } from './after-disk-writes.ts';
import { memoryRows } from './dirty-memory.ts';
import { gapRow } from './guest-gap.ts';
import { idleRows } from './idle-pause.ts';

/** What it costs to keep a sandbox: whoever waits for the answer, and the guest that stands still meanwhile. */
export const pause: Measurement = {
  name: 'pause',
  about: 'a pause over a bare stop and save; how long the guest stands still for a snapshot, with much written',
  limitMs: 8 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon();
    {
      // The first one has the template captured.
      await using _first = await createSandbox(daemon);
    }
    await using bare = await BareMachines.open(bench, await capturedMachine(daemon), 1);
    return [
      ...(await idleRows(bench, daemon, bare)),
      ...(await diskRows(bench, daemon)),
      ...(await memoryRows(bench, daemon)),
      await gapRow(bench, daemon),
    ];
  },
};
