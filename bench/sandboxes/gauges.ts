import type { TestDaemon } from '../../tests/harness/daemon.ts';
import { until } from '../../tests/harness/until.ts';
import type { Bench } from '../measurement.ts';

/** Default of `network.slots_high`. */
const SLOTS_READY = 6;
const LIMIT_MS = 60_000;

/** The daemon has made the network slots that it keeps ready, and is at rest. */
export async function slotsReady(bench: Bench, daemon: TestDaemon): Promise<void> {
  await gaugeIs(bench, daemon, 'aenv_network_slots{state="ready"}', SLOTS_READY);
}

/** As many machines stand ready. */
export async function warmReady(bench: Bench, daemon: TestDaemon, count: number): Promise<void> {
  await gaugeIs(bench, daemon, 'aenv_warm_sandboxes', count);
}

async function gaugeIs(bench: Bench, daemon: TestDaemon, series: string, value: number): Promise<void> {
  const hasValue = async () => {
    bench.signal.throwIfAborted();
    const text = await (await fetch(`${daemon.url}/metrics`)).text();
    return text.split('\n').includes(`${series} ${value}`);
  };
  const fatal = () => bench.signal.aborted;
  await until(hasValue, { timeoutMs: LIMIT_MS, what: `${series} is ${value}`, everyMs: 100, fatal });
}
