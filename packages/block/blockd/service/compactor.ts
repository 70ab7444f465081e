import { randomUUID } from 'node:crypto';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { DiskLayer } from '../records/schema.ts';
import type { Disk } from './disk.ts';
import type { DiskStore } from './disk-store.ts';
import type { LayerStore } from './layer-store.ts';
import { mergeableLayers } from './references.ts';
import { sealedAfterSwap, swapUpper } from './swap.ts';

export interface CompactionLimits {
  /** layers of a disk above which those that it has written are merged */
  readonly maxLayers: number;
  /** bytes of an upper below which its garbage does not matter */
  readonly minGarbageBytes: number;
  /** share of an upper that must still be read, 0..1 */
  readonly minLiveShare: number;
}

const ABSORBED_TIMES = 2;

/**
 * Keeps the space of disks bounded by what is in them: an append-only upper keeps what was overwritten until it is
 * written anew, and chains grow with every snapshot.
 */
export class Compactor {
  readonly #limits: CompactionLimits;
  readonly #store: DiskStore;
  readonly #layers: LayerStore;
  readonly #log: Logger;
  readonly #running = new Set<Promise<unknown>>();
  #count = 0;

  constructor(limits: CompactionLimits, store: DiskStore, layers: LayerStore, log: Logger) {
    this.#limits = limits;
    this.#store = store;
    this.#layers = layers;
    this.#log = log;
  }

  /** merges that were done */
  get count(): number {
    return this.#count;
  }

  /** Begins what is due for a disk, in the background; a failure is logged, and the disk is as good as before. */
  consider(disk: Disk): void {
    if (disk.compacting || disk.thread === undefined) return;
    const work = this.#work(disk).catch((error: unknown) => {
      this.#log.warn('a disk could not be compacted', { disk: disk.id, error });
    });
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  /** Merges the layers that a disk has written, whatever the limits say. Not while another merge of it is under way. */
  async compact(disk: Disk): Promise<void> {
    if (disk.compacting) return;
    disk.compacting = true;
    try {
      const { top } = mergeableLayers(disk.record.layers);
      if (top.length > 0) await this.#merge(disk, top);
    } finally {
      disk.compacting = false;
    }
  }

  /** Waits for what is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #work(disk: Disk): Promise<void> {
    disk.compacting = true;
    try {
      if (disk.record.layers.length > this.#limits.maxLayers) {
        const { top } = mergeableLayers(disk.record.layers);
        if (top.length > 1) await this.#merge(disk, top);
      } else {
        const live = await this.#liveAmongGarbage(disk);
        if (live === undefined) return;
        const frozen = await disk.serial.run(() => swapUpper(this.#store, disk));
        await frozen.stored;
        await this.#merge(disk, [...(await this.#absorbedBy(disk, frozen.layer, live)), frozen.layer]);
      }
    } finally {
      disk.compacting = false;
    }
  }

  /** Bytes of an upper that are still read, if the rest is worth collecting. */
  async #liveAmongGarbage(disk: Disk): Promise<number | undefined> {
    const { thread } = disk;
    if (thread === undefined) return undefined;
    const { total, live } = await thread.call('usage', { disk: disk.id });
    return total > this.#limits.minGarbageBytes && live < total * this.#limits.minLiveShare ? live : undefined;
  }

  /**
   * Layers right below one that is merged, bottom first, which are merged with it: what is written over and over would else
   * be kept once for each time that garbage was collected. Only those whose space comes back, and that are not so much
   * larger that a little garbage has much written anew.
   */
  async #absorbedBy({ record }: Disk, layer: string, bytes: number): Promise<string[]> {
    const absorbed: string[] = [];
    let sum = bytes;
    for (let at = startOf(record.layers, [layer]) - 1; at >= 0; at--) {
      const below = record.layers[at];
      if (below?.kind !== 'own' || !this.#layers.isExclusive(below.layer)) break;
      const size = await this.#layers.allocatedBytes(below.layer);
      if (size > ABSORBED_TIMES * sum) break;
      sum += size;
      absorbed.unshift(below.layer);
    }
    return absorbed;
  }

  /**
   * Puts one layer in place of some of a disk's own that lie above one another. The disk is used meanwhile, and may get
   * further layers.
   */
  async #merge(disk: Disk, merged: readonly string[]): Promise<void> {
    const begin = performance.now();
    const into = randomUUID();
    this.#layers.use([...merged, into]);
    try {
      for (const layer of merged) await sealedAfterSwap(disk, layer);
      const { thread } = disk;
      if (thread === undefined) return;
      const { sizeBytes } = disk.record;
      const isBottom = startOf(disk.record.layers, merged) === 0;
      const written = await thread.call('merge', { layers: merged, into, sizeBytes, isBottom });
      await disk.serial.run(() => this.#replace(disk, merged, into));
      this.#count++;
      const ms = Math.round(performance.now() - begin);
      this.#log.info('layers merged', { disk: disk.id, layers: merged.length, bytes: written.sizeBytes, ms });
    } finally {
      await this.#layers.release([...merged, into]);
    }
  }

  async #replace(disk: Disk, merged: readonly string[], into: string): Promise<void> {
    const { thread, record } = disk;
    const start = startOf(record.layers, merged);
    // The disk was closed or removed meanwhile.
    if (thread === undefined || start < 0) return;
    const layers: DiskLayer[] = [
      ...record.layers.slice(0, start),
      { kind: 'own', layer: into },
      ...record.layers.slice(start + merged.length),
    ];
    await thread.call('restack', { disk: disk.id, layers });
    await this.#store.put(disk, { ...record, layers });
  }
}

/** Where a run of own layers begins in a chain; -1 when it is not there. */
function startOf(layers: readonly DiskLayer[], run: readonly string[]): number {
  const start = layers.findIndex((layer) => layer.kind === 'own' && layer.layer === run[0]);
  const matches = run.every((id, index) => {
    const layer = layers[start + index];
    return layer?.kind === 'own' && layer.layer === id;
  });
  return start >= 0 && matches ? start : -1;
}
