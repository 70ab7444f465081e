import type { StorageHost } from '@aenv/block/client/testing/fixture.ts';
import type { Bench, Row } from '../measurement.ts';
import { settledRss } from '../memory/rss.ts';
import { row } from '../report/rows.ts';

const DISKS = 50;
const SIZE = 10 * 2 ** 30;

/** What the block daemon takes, with no disk and for each that is attached. */
export async function memoryRows(bench: Bench, host: StorageHost): Promise<Row[]> {
  const pid = await host.supervisor.pid();
  const idle = await settledRss(pid, bench.signal);
  const names = Array.from({ length: DISKS }, (_, index) => `idle-${index}`);
  for (const name of names) {
    const disk = await host.store.create(name, { origin: { kind: 'layers', layers: [] }, sizeBytes: SIZE });
    await disk.attach(process.getuid?.() ?? 0);
  }
  const all = await settledRss(pid, bench.signal);
  for (const name of names) await host.store.remove(name);
  bench.say(`block daemon: ${idle.total.toFixed(1)} MiB, with ${DISKS} disks ${all.total.toFixed(1)} MiB`);
  return [
    row('block/daemon idle', idle.total, 'MiB'),
    row('block/daemon per disk', (all.total - idle.total) / DISKS, 'MiB', undefined, { disks: DISKS }),
  ];
}
