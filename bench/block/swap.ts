import type { StorageHost } from '@aenv/block/client/testing/fixture.ts';
import type { Bench, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { fio } from './fio.ts';

const MIB = 1024 * 1024;
const SMALL = 64 * MIB;
const LARGE = 4096 * MIB;
const DISK = 8192 * MIB;
const ROUNDS = 5;
const WRITES = { name: 'dirty', rw: 'randwrite', blockSize: '64k', depth: 8 } as const;

/** How long a disk stands still for a snapshot, with little and with much written since the last one. */
export async function swapRows(bench: Bench, host: StorageHost): Promise<Row[]> {
  const rounds = bench.rounds(ROUNDS);
  const small = await swapTimes(bench, host, SMALL, rounds);
  const large = await swapTimes(bench, host, LARGE, Math.min(rounds, 3));
  return [
    seriesRow('block/snapshot of 64 MiB', small, 'ms', { atMost: 2 }),
    seriesRow('block/snapshot of 4 GiB', large, 'ms', { atMost: 2 }),
    ratioRow('block/snapshot of 4 GiB over 64 MiB', { large, small }),
  ];
}

async function swapTimes(bench: Bench, host: StorageHost, dirty: number, rounds: number): Promise<number[]> {
  const times: number[] = [];
  const id = `swap-${dirty}`;
  for (let round = 0; round < rounds; round++) {
    const disk = await host.store.create(id, { origin: { kind: 'layers', layers: [] }, sizeBytes: DISK });
    try {
      const source = await disk.attach(process.getuid?.() ?? 0);
      if (source.kind !== 'nbd') throw new Error('no NBD socket');
      await fio({
        socket: source.socket,
        workload: WRITES,
        size: DISK,
        bytes: dirty,
        seed: round,
        signal: bench.signal,
      });
      await disk.prepareSnapshot();
      const { swapMs, durable } = await disk.snapshot(id);
      await durable;
      times.push(swapMs);
      bench.say(`snapshot with ${dirty / MIB} MiB written: ${swapMs.toFixed(2)} ms`);
    } finally {
      await disk.remove();
      await host.store.removeSnapshot(id);
    }
  }
  return times;
}
