import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { lineThrough } from '../sampling/line.ts';
import { summarise } from '../sampling/statistics.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { Snapshots, type Taken } from './snapshots.ts';

const ROUNDS = 4;
const MIB = 2 ** 20;
/** MiB that are dirtied at a time, and how often. */
const STEP = 100;
const STEPS = 3;
const DIRTIER = '/root/dirty-memory.py';
/** Becomes a process that holds so many MiB which are not zeros. */
const PROGRAM = `
import os, signal, sys
piece = os.urandom(1 << 20)
held = bytearray(${STEP} << 20)
for i in range(${STEP}): held[i << 20:(i + 1) << 20] = piece
print('dirty', flush=True)
if os.fork(): os._exit(0)
os.setsid()
null = os.open('/dev/null', os.O_RDWR)
for fd in 0, 1, 2: os.dup2(null, fd)
signal.pause()
`;

/** Snapshots of one state, of which the median counts: freezing and letting go vary by as much as half of the memory takes. */
const REPEATED = 3;

/** One sandbox idle, and after each step. */
type Series = readonly Taken[];

/**
 * What dirty memory adds to the time for which a guest stands still: it should follow the pages. What it adds is little
 * beside what an idle one takes, so ratios of it are ratios of noise; a line through the first states foretells the last.
 */
export async function memoryRows(bench: Bench, daemon: TestDaemon): Promise<Row[]> {
  const all: Series[] = [];
  const rounds = bench.rounds(ROUNDS);
  for (let round = 1; round <= rounds; round++) {
    bench.signal.throwIfAborted();
    // A new one each time: memory that a guest has freed is dirty still.
    await using sandbox = await createSandbox(daemon);
    await uploadProgram(daemon, sandbox, DIRTIER, Buffer.from(PROGRAM));
    const snapshots = new Snapshots(daemon, sandbox);
    const dirty = async () => {
      await runCommand(daemon, sandbox, 'python3', [DIRTIER]);
      return await median(snapshots);
    };
    // The first one has the guest translate what the others find done.
    await snapshots.take();
    const series = [await median(snapshots)];
    while (series.length <= STEPS) series.push(await dirty());
    all.push(series);
    const told = series.map(({ stillMs, bytes }) => `${stillMs.toFixed(0)} ms for ${(bytes / MIB).toFixed(0)} MiB`);
    bench.say(`${round}/${rounds}: still ${told.join(', ')}`);
  }
  const at = (step: number) => all.map((series) => series[step] as Taken);
  const last = at(STEPS);
  const foretold = all.map((series, round) => {
    const { intercept, slope } = lineThrough(series.slice(0, STEPS).map(pointOf));
    return intercept + slope * pointOf(last[round] as Taken)[0];
  });
  const low = STEP * (STEPS - 1);
  return [
    ratioRow(
      `pause/guest stands still for ${STEP * STEPS} MiB of dirty memory, over what 0 to ${low} MiB foretell`,
      { measured: last.map(({ stillMs }) => stillMs), foretold },
      { atMost: 1.1 },
      {
        ms: Object.fromEntries(
          Array.from({ length: STEPS + 1 }, (_, step) => [`${step * STEP} MiB`, summarise(at(step).map(stillOf))]),
        ),
        note: 'series in ms; a straight line through the states of one sandbox; the goal is our own: where twice the pages take 2.4 times as long, it is missed',
      },
    ),
    seriesRow(
      'pause/guest stands still, per MiB of dirty memory',
      all.map((series) => lineThrough(series.map(pointOf)).slope),
      'ms',
    ),
    seriesRow('pause/guest stands still, 200 MiB of dirty memory', at(2).map(stillOf), 'ms'),
    seriesRow(
      'pause/answer to a snapshot, 200 MiB of dirty memory',
      at(2).map(({ apiMs }) => apiMs),
      'ms',
    ),
  ];
}

const stillOf = ({ stillMs }: Taken): number => stillMs;

/** MiB that were kept, and for how long the guest stood still. */
const pointOf = ({ bytes, stillMs }: Taken): readonly [number, number] => [bytes / MIB, stillMs];

/** @returns the one with the median of the times for which the guest stood still */
async function median(snapshots: Snapshots): Promise<Taken> {
  const taken = [await snapshots.take()];
  while (taken.length < REPEATED) taken.push(await snapshots.take());
  taken.sort((a, b) => a.stillMs - b.stillMs);
  return taken[(REPEATED - 1) / 2] as Taken;
}
