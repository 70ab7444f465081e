import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { BareMachines } from '../bare/bare-machines.ts';
import { bringUpToDate, letGo, runDirectly } from '../bare/guest-calls.ts';
import type { Bench, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { PhaseSeries } from '../sampling/phases.ts';
import { slotsReady } from '../sandboxes/gauges.ts';
import { type FirstCommand, firstCommand } from './first-command.ts';

const ROUNDS = 10;
const SHELL = ['/bin/sh', ['-c', 'echo ok']] as const;
const GOAL = { atMost: 1.3 };

/** Both bare ways, one after the other: each is a machine of its own. */
interface Bare {
  /** the exec alone, and what it takes that programs run */
  readonly least: number;
  /** all calls that the daemon makes as well */
  readonly same: number;
}

/** A create without anything ready, over what QEMU and the guest take for it without a daemon. */
export async function coldRows(bench: Bench, daemon: TestDaemon, bare: BareMachines): Promise<Row[]> {
  const { a, b } = await interleave(
    bench,
    bench.rounds(ROUNDS),
    async () => {
      await slotsReady(bench, daemon);
      return firstCommand(daemon);
    },
    async (): Promise<Bare> => {
      // The daemon is at rest, too: what it does after a create is not part of this.
      await slotsReady(bench, daemon);
      return { least: await bareCommand(bench, bare, letGo), same: await bareCommand(bench, bare, bringUpToDate) };
    },
    (ours, { least, same }) =>
      `create and exec ${ours.totalMs.toFixed(0)} ms, bare ${least.toFixed(0)} ms, with the same calls ${same.toFixed(0)} ms`,
  );
  return rows(a, b);
}

async function bareCommand(bench: Bench, bare: BareMachines, tell: typeof letGo): Promise<number> {
  const [place] = bare.places;
  if (place === undefined) throw new Error('there is no place for a bare machine');
  await bare.clear(place);
  const begin = performance.now();
  await using machine = await bare.start(place);
  await tell(machine.address, bare.machine.hostSecret, bench.signal);
  const asked = performance.now();
  const { firstByteMs } = await runDirectly(machine.address, ...SHELL);
  return asked - begin + firstByteMs;
}

function rows(ours: readonly FirstCommand[], bare: readonly Bare[]): Row[] {
  const total = ours.map(({ totalMs }) => totalMs);
  const least = bare.map((sample) => sample.least);
  const same = bare.map((sample) => sample.same);
  const phases = new PhaseSeries();
  for (const { phases: of } of ours) phases.add(of);
  const without =
    'series in ms; bare: QEMU of the same machine with the same memory file and device state, its disk a qcow2 over a plain file, in a slot made ahead, loaded and continued';
  return [
    ratioRow('restore/create to first output over bare restore and exec', { ours: total, bare: least }, GOAL, {
      note: `${without}; its envd is told to let programs go on and asked for the exec, without a proxy`,
    }),
    ratioRow('restore/create to first output over bare restore and same calls', { ours: total, bare: same }, GOAL, {
      note: `${without}; its envd gets time, entropy, secrets and names as that of a sandbox does, and the exec, without a proxy`,
    }),
    seriesRow('restore/create to first output', total, 'ms', undefined, {
      create: phases.medians(),
      exec: new PhaseSeries(ours.map(({ execMs }) => ({ firstByte: execMs }))).medians(),
    }),
  ];
}
