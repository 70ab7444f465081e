import { setTimeout as delay } from 'node:timers/promises';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Measurement, Row } from '../measurement.ts';
import { pssOf } from '../memory/pss.ts';
import { vmProcess } from '../proxy/slot-address.ts';
import { row } from '../report/rows.ts';
import { round } from '../sampling/statistics.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { runCommand } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { blockDaemonOf, cpuMs } from './cpu-time.ts';

const FULL_MS = 60_000;
const QUICK_MS = 15_000;
/** After the last thing that was done. */
const REST_MS = 5_000;

/** What a sandbox costs that does nothing, and the daemon that has it. */
export const idle: Measurement = {
  name: 'idle',
  about: 'processor time and memory of an idle sandbox, and of the daemon with and without one',
  limitMs: 6 * 60_000,
  async run(bench) {
    const length = bench.rounds(5) < 5 ? QUICK_MS : FULL_MS;
    await using daemon = await openDaemon();
    const alone = await watch(bench, length, await daemonPids(daemon));
    await using sandbox = await createSandbox(daemon);
    await runCommand(daemon, sandbox, '/bin/sh', ['-c', 'echo ok']);
    const vm = Number(await vmProcess(sandbox.id));
    const pids = await daemonPids(daemon);
    const [withOne, ofVm] = await Promise.all([watch(bench, length, pids), watch(bench, length, [vm])]);
    bench.say(
      `ms of a processor in a second: daemon ${round(alone)}, with a sandbox ${round(withOne)}, VM ${round(ofVm)}`,
    );
    return rows(length, { alone, withOne, ofVm, pss: await pssOf(vm) });
  },
};

interface Found {
  readonly alone: number;
  readonly withOne: number;
  readonly ofVm: number;
  readonly pss: number;
}

function rows(length: number, { alone, withOne, ofVm, pss }: Found): Row[] {
  const note = `over ${length / 1000} s without a request; the daemon with its block daemon`;
  return [
    row('idle/processor time of a sandbox', ofVm, 'ms/s', undefined, { note: `its QEMU, ${note}` }),
    row('idle/processor time of the daemon', alone, 'ms/s', undefined, { note }),
    row('idle/processor time of the daemon with a sandbox', withOne, 'ms/s', undefined, { note }),
    row('idle/memory of a sandbox', pss, 'MiB', undefined, { note: 'proportional set size of its QEMU, the only one' }),
  ];
}

async function daemonPids(daemon: TestDaemon): Promise<number[]> {
  return [daemon.pid, ...(await blockDaemonOf(daemon))];
}

/** @returns `ms` of processor time in each second */
async function watch(bench: Bench, length: number, pids: readonly number[]): Promise<number> {
  await delay(REST_MS, undefined, { signal: bench.signal });
  const before = await cpuMs(pids);
  const begin = performance.now();
  await delay(length, undefined, { signal: bench.signal });
  return ((await cpuMs(pids)) - before) / ((performance.now() - begin) / 1000);
}
