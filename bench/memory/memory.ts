import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Measurement } from '../measurement.ts';
import { row } from '../report/rows.ts';
import { round } from '../sampling/statistics.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { type Rss, settledRss } from './rss.ts';

const FURTHER = 5;

/** What the daemon itself takes, idle and for each sandbox; a VM's memory is in a process of its own. */
export const memory: Measurement = {
  name: 'memory',
  about: 'resident memory of the daemon, idle and for each further running sandbox',
  limitMs: 15 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon();
    const idle = await settledRss(daemon.pid, bench.signal);
    bench.say(`idle: ${idle.total.toFixed(1)} MiB`);

    await using sandboxes = new Rollback();
    await addSandbox(daemon, sandboxes);
    const one = await settledRss(daemon.pid, bench.signal);
    bench.say(`with one sandbox: ${one.total.toFixed(1)} MiB`);
    const further = bench.rounds(FURTHER);
    for (let n = 0; n < further; n++) {
      bench.signal.throwIfAborted();
      await addSandbox(daemon, sandboxes);
    }
    const all = await settledRss(daemon.pid, bench.signal);
    bench.say(`with ${further + 1}: ${all.total.toFixed(1)} MiB`);
    return [
      row('memory/daemon idle', idle.total, 'MiB', { atMost: 120 }, describe(idle)),
      row(
        'memory/daemon per further sandbox',
        (all.total - one.total) / further,
        'MiB',
        { atMost: 3 },
        {
          further,
          withOne: describe(one),
          withAll: describe(all),
          // Code that the first sandbox brings in is not paid again.
          perSandboxFromIdle: round((all.total - idle.total) / (further + 1)),
        },
      ),
    ];
  },
};

async function addSandbox(daemon: TestDaemon, sandboxes: Rollback): Promise<void> {
  const sandbox = await createSandbox(daemon);
  sandboxes.add(async () => sandbox[Symbol.asyncDispose]());
}

function describe(rss: Rss): Readonly<Record<string, unknown>> {
  return { total: round(rss.total), anonymous: round(rss.anonymous), settled: rss.settled };
}
