import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { Snapshots, type Taken } from './snapshots.ts';

const ROUNDS = 4;
const MIB = 2 ** 20;
const HALF = 100;
const DIRTIER = '/root/dirty-memory.py';
/** Becomes a process that holds so many MiB which are not zeros. */
const PROGRAM = `
import os, signal, sys
piece = os.urandom(1 << 20)
held = bytearray(${HALF} << 20)
for i in range(${HALF}): held[i << 20:(i + 1) << 20] = piece
print('dirty', flush=True)
if os.fork(): os._exit(0)
os.setsid()
null = os.open('/dev/null', os.O_RDWR)
for fd in 0, 1, 2: os.dup2(null, fd)
signal.pause()
`;

/** Snapshots of one state, of which the median counts: freezing and letting go vary by as much as half of the memory takes. */
const REPEATED = 3;

/** One sandbox idle, with half of it dirty, with all of it. */
type Series = readonly [Taken, Taken, Taken];

/** What dirty memory adds to the time for which a guest stands still: it should follow the pages. */
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
    const series: Series = [await median(snapshots), await dirty(), await dirty()];
    all.push(series);
    const told = series.map(({ stillMs, bytes }) => `${stillMs.toFixed(0)} ms for ${(bytes / MIB).toFixed(0)} MiB`);
    bench.say(`${round}/${rounds}: still ${told.join(', ')}`);
  }
  const beyond = (at: 1 | 2) => all.map((series) => series[at].stillMs - series[0].stillMs);
  const perMib = (at: 1 | 2) =>
    all.map((series) => (series[at].stillMs - series[0].stillMs) / ((series[at].bytes - series[0].bytes) / MIB));
  return [
    ratioRow(
      `pause/guest stands still for ${2 * HALF} MiB of dirty memory, over ${HALF} MiB`,
      { [`${2 * HALF} MiB`]: beyond(2), [`${HALF} MiB`]: beyond(1) },
      { atMost: 2.4 },
      { note: 'series in ms, beyond that of the same sandbox idle; 2 is proportional, the goal is our own' },
    ),
    seriesRow('pause/guest stands still, per MiB of dirty memory', perMib(2), 'ms'),
    seriesRow(
      `pause/guest stands still, ${2 * HALF} MiB of dirty memory`,
      all.map(([, , { stillMs }]) => stillMs),
      'ms',
    ),
    seriesRow(
      `pause/answer to a snapshot, ${2 * HALF} MiB of dirty memory`,
      all.map(([, , { apiMs }]) => apiMs),
      'ms',
    ),
  ];
}

/** @returns the one with the median of the times for which the guest stood still */
async function median(snapshots: Snapshots): Promise<Taken> {
  const taken = [await snapshots.take()];
  while (taken.length < REPEATED) taken.push(await snapshots.take());
  taken.sort((a, b) => a.stillMs - b.stillMs);
  return taken[(REPEATED - 1) / 2] as Taken;
}
