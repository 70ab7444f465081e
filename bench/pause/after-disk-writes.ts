import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { PhaseSeries } from '../sampling/phases.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { Snapshots, type Taken } from './snapshots.ts';

/** The median of a few says little. Three snapshots each, so that the layers of the disk are fewer than what is merged. */
const ROUNDS = 7;
const MIB = 1024;
const WRITER = '/root/write-disk.py';
/** Past the page cache: what is written must be on the disk, and not in the memory, which is measured by itself. */
const PROGRAM = `
import mmap, os, sys
piece = mmap.mmap(-1, 8 << 20)
piece.write(os.urandom(1 << 20) * 8)
fd = os.open('/root/written', os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
for i in range(int(sys.argv[1]) // 8): os.pwrite(fd, piece, i * (8 << 20))
os.fsync(fd)
print('written')
`;

/**
 * How long a guest stands still for a snapshot that has 1 GiB of disk to keep, over one that has nothing new. A third one
 * follows the same program, which then writes nothing: what it has in common with the first does not come from the disk.
 */
export async function diskRows(bench: Bench, daemon: TestDaemon): Promise<Row[]> {
  await using sandbox = await createSandbox(daemon);
  await uploadProgram(daemon, sandbox, WRITER, Buffer.from(PROGRAM));
  const snapshots = new Snapshots(daemon, sandbox);
  const after = async (mib: number) => {
    await runCommand(daemon, sandbox, 'python3', [WRITER, String(mib)]);
    return await snapshots.take();
  };
  const { a, b: others } = await interleave(
    bench,
    bench.rounds(ROUNDS),
    () => after(MIB),
    async () => ({ ran: await after(0), idle: await snapshots.take() }),
    (written, { ran, idle }) =>
      `${MIB} MiB written: still ${written.stillMs.toFixed(0)} ms, answer ${written.apiMs.toFixed(0)} ms; nothing written: ${ran.stillMs.toFixed(0)} ms; idle: ${idle.stillMs.toFixed(0)} ms, ${idle.apiMs.toFixed(0)} ms`,
  );
  const b = others.map(({ idle }) => idle);
  const ran = others.map((both) => both.ran);
  const stillOf = (taken: readonly Taken[]) => taken.map(({ stillMs }) => stillMs);
  const still = { written: stillOf(a), idle: stillOf(b) };
  const phases = (taken: readonly Taken[]) => new PhaseSeries(taken.map((one) => one.phases)).medians();
  return [
    ratioRow(
      'pause/guest stands still for a snapshot, 1 GiB of disk written over idle',
      still,
      { atMost: 1.1 },
      {
        phases: { written: phases(a), idle: phases(b) },
        note: 'series in ms; programs of the guest, from their stop to their going on; written past its page cache',
      },
    ),
    ratioRow(
      'pause/guest stands still for a snapshot, 1 GiB of disk written over the same program without',
      { written: still.written, without: stillOf(ran) },
      undefined,
      { phases: { without: phases(ran) }, note: 'series in ms' },
    ),
    seriesRow('pause/guest stands still for a snapshot, idle', still.idle, 'ms'),
    seriesRow(
      'pause/answer to a snapshot, idle',
      b.map(({ apiMs }) => apiMs),
      'ms',
    ),
    seriesRow(
      'pause/answer to a snapshot, 1 GiB of disk written',
      a.map(({ apiMs }) => apiMs),
      'ms',
    ),
  ];
}
