import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { PhaseSeries } from '../sampling/phases.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { Snapshots } from './snapshots.ts';

const ROUNDS = 4;
const MIB = 1024;
const WRITER = '/root/write-disk.py';
/** Past the page cache: what is written must be on the disk, and not in the memory, which is measured by itself. */
const PROGRAM = `
import mmap, os
piece = mmap.mmap(-1, 8 << 20)
piece.write(os.urandom(1 << 20) * 8)
fd = os.open('/root/written', os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
for i in range(${MIB} // 8): os.pwrite(fd, piece, i * (8 << 20))
os.fsync(fd)
print('written')
`;

/** How long a guest stands still for a snapshot that has 1 GiB of disk to keep, over one that has nothing new. */
export async function diskRows(bench: Bench, daemon: TestDaemon): Promise<Row[]> {
  await using sandbox = await createSandbox(daemon);
  await uploadProgram(daemon, sandbox, WRITER, Buffer.from(PROGRAM));
  const snapshots = new Snapshots(daemon, sandbox);
  const write = () => runCommand(daemon, sandbox, 'python3', [WRITER]);
  const { a, b } = await interleave(
    bench,
    bench.rounds(ROUNDS),
    async () => {
      await write();
      return await snapshots.take();
    },
    () => snapshots.take(),
    (written, idle) =>
      `${MIB} MiB written: still ${written.stillMs.toFixed(0)} ms, answer ${written.apiMs.toFixed(0)} ms; idle: ${idle.stillMs.toFixed(0)} ms, ${idle.apiMs.toFixed(0)} ms`,
  );
  const still = { written: a.map(({ stillMs }) => stillMs), idle: b.map(({ stillMs }) => stillMs) };
  const phases = (taken: typeof a) => new PhaseSeries(taken.map((one) => one.phases)).medians();
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
