import type { Measurement } from '../measurement.ts';
import { seriesRow } from '../report/rows.ts';
import { PhaseSeries } from '../sampling/phases.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';

const ROUNDS = 12;

/** How long a client waits for a sandbox, and for its end. */
export const lifecycle: Measurement = {
  name: 'lifecycle',
  about: 'create and delete as a client sees them, and the parts of a create',
  limitMs: 10 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon();
    const create: number[] = [];
    const remove: number[] = [];
    const phases = new PhaseSeries();
    const rounds = bench.rounds(ROUNDS);
    for (let number = 0; number <= rounds; number++) {
      bench.signal.throwIfAborted();
      await using sandbox = await createSandbox(daemon);
      const parts = await sandbox.phases();
      const removeMs = await sandbox.kill();
      // The first one fills caches.
      if (number === 0) continue;
      create.push(sandbox.createMs);
      remove.push(removeMs);
      phases.add(parts);
      bench.say(`${number}/${rounds}: create ${sandbox.createMs.toFixed(0)} ms, delete ${removeMs.toFixed(0)} ms`);
    }
    return [
      seriesRow('lifecycle/create', create, 'ms', undefined, { phases: phases.medians() }),
      seriesRow('lifecycle/delete', remove, 'ms'),
    ];
  },
};
