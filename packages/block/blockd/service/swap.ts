import { randomUUID } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DiskLayer } from '../records/schema.ts';
import type { Disk } from './disk.ts';
import type { DiskStore } from './disk-store.ts';

/** What a swap has made of a disk. */
export interface Swapped {
  /** the layer that was written up to now */
  readonly layer: string;
  /** how long the disk stood still */
  readonly ms: number;
  /** the chain with that layer on top */
  readonly layers: readonly DiskLayer[];
  /** resolves when the record tells of it */
  readonly stored: Promise<void>;
}

/** Makes an empty layer for the next swap and notes it; goes on where it failed before. To be called in the disk's own order. */
export async function prepareSwap(store: DiskStore, disk: Disk): Promise<void> {
  const thread = await store.open(disk);
  const { sizeBytes, uppers } = disk.record;
  const [upper, noted] = uppers;
  if (disk.prepared || upper === undefined) return;
  const layer = noted ?? randomUUID();
  if (noted === undefined) await thread.call('createLayer', { layer, sizeBytes });
  // First the record: a swap must find its way back from a crash.
  await store.put(disk, { ...disk.record, uppers: [upper, layer] });
  await thread.call('prepare', { disk: disk.id, layer });
  disk.prepared = true;
}

/**
 * Exchanges the upper. Returns when the disk can be written again; the record follows. To be called in the disk's own
 * order, of which the storing of the record is a part.
 */
export async function swapUpper(store: DiskStore, disk: Disk): Promise<Swapped> {
  await prepareSwap(store, disk);
  const thread = await store.open(disk);
  const [upper, next] = disk.record.uppers;
  const { frozen, ms } = await thread.call('swap', { disk: disk.id });
  disk.prepared = false;
  if (frozen !== upper || next === undefined) throw new AenvError('internal', `disk ${disk.id} had another upper`);
  const layers: DiskLayer[] = [...disk.record.layers, { kind: 'own', layer: frozen }];
  const stored = store.put(disk, { ...disk.record, layers, uppers: [next] });
  stored.catch(() => {});
  return { layer: frozen, ms, layers, stored };
}

/** Waits until a layer that a swap has frozen is on stable storage, and all that it stands on. */
export async function sealedAfterSwap(disk: Disk, layer: string): Promise<void> {
  const { thread } = disk;
  if (thread === undefined) throw new AenvError('internal', `disk ${disk.id} is not open`);
  await thread.call('sealed', { disk: disk.id, layer });
}
