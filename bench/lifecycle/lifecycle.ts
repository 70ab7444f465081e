import type { Measurement } from '../measurement.ts';
import { seriesRow } from '../report/rows.ts';
import { median, round } from '../sampling/statistics.ts';
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
    const phases = new Map<string, number[]>();
    const rounds = bench.rounds(ROUNDS);
    for (let number = 0; number <= rounds; number++) {
      bench.signal.throwIfAborted();
      await using sandbox = await createSandbox(daemon);
      const removeMs = await sandbox.kill();
      // The first one fills caches.
      if (number === 0) continue;
      create.push(sandbox.createMs);
      remove.push(removeMs);
      for (const [phase, ms] of Object.entries(sandbox.phases)) phases.set(phase, [...(phases.get(phase) ?? []), ms]);
      bench.say(`${number}/${rounds}: create ${sandbox.createMs.toFixed(0)} ms, delete ${removeMs.toFixed(0)} ms`);
    }
    const medians = Object.fromEntries([...phases].map(([phase, samples]) => [phase, round(median(samples))]));
    return [
      seriesRow('lifecycle/create', create, 'ms', undefined, { phases: medians }),
      seriesRow('lifecycle/delete', remove, 'ms'),
    ];
  },
};
