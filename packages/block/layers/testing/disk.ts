import { join } from 'node:path';
import type { FrozenLayer, LayerStack, WritableLayer } from '../contract.ts';
import type { LayerFiles } from '../files/contract.ts';
import { hostFiles } from '../files/host.ts';
import { fileLayer, LayerPool, type LayerRef } from '../stack/pool.ts';
import { createWritableLayer, reopenWritableLayer } from '../writable/open.ts';

/** Where a disk of a test is, and through what its files are reached. */
export interface DiskPlace {
  readonly folder: string;
  readonly size: number;
  readonly files?: LayerFiles;
  readonly openSealed?: (path: string) => LayerRef;
  readonly bootId?: string;
}

/** A chain of layers with a writable one on top, put together as a volume does it, for tests. */
export class Disk {
  readonly #place: DiskPlace;
  readonly #sealed: string[] = [];
  #frozen: FrozenLayer[] = [];
  #upper: WritableLayer;
  #stack: LayerStack;
  #count = 1;

  private constructor(place: DiskPlace, upper: WritableLayer, stack: LayerStack) {
    this.#place = place;
    this.#upper = upper;
    this.#stack = stack;
  }

  static async create(place: DiskPlace): Promise<Disk> {
    const upper = await createWritableLayer({ ...layerPlace(place, 0), uuid: uuidOf(0), virtualSize: place.size });
    return new Disk(place, upper, await new LayerPool().openStack([]));
  }

  /** After a crash: layers that were not sealed in time are frozen again, `count` layers were made. */
  static async recover(place: DiskPlace, count: number): Promise<Disk> {
    const files = place.files ?? hostFiles;
    const sealed: string[] = [];
    for (let number = 0; number < count - 1; number++) {
      const path = sealedPath(place, number);
      const file = await files.open(path);
      if (file === undefined) await (await reopenWritableLayer(layerPlace(place, number))).freeze().durable;
      await file?.close();
      sealed.push(path);
    }
    // What a snapshot has left that did not come to its end.
    for (const name of ['writable_data', 'writable_index']) {
      await files.remove(join(layerPlace(place, count).folder, name));
    }
    const upper = await reopenWritableLayer(layerPlace(place, count - 1));
    const stack = await new LayerPool().openStack(sealed.map(place.openSealed ?? fileLayer));
    const disk = new Disk(place, upper, stack);
    disk.#sealed.push(...sealed);
    disk.#count = count;
    return disk;
  }

  get upper(): WritableLayer {
    return this.#upper;
  }

  get stack(): LayerStack {
    return this.#stack;
  }

  /** Paths of the sealed layers, bottom first. */
  get sealed(): readonly string[] {
    return this.#sealed;
  }

  /** Layers made so far. */
  get count(): number {
    return this.#count;
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const target = Buffer.alloc(length, 0xaa);
    const gaps: [number, number][] = [];
    let at = offset;
    this.#upper.lookup(offset, length, (start, count, place, zeroed) => {
      if (start > at) gaps.push([at, start]);
      at = start + count;
      const part = target.subarray(start - offset, at - offset);
      if (zeroed) part.fill(0);
      else this.#upper.readDataSync(part, place);
    });
    if (offset + length > at) gaps.push([at, offset + length]);
    for (const [from, to] of gaps) {
      const part = target.subarray(from - offset, to - offset);
      if (!this.#stack.readSync(part, from)) await this.#stack.read(part, from);
    }
    return target;
  }

  /** All that was written is durable, also in layers that are still being sealed. */
  async flush(): Promise<void> {
    await Promise.all([this.#upper.flush('strict'), ...this.#frozen.map((frozen) => frozen.durable)]);
  }

  /** Freezes the writable layer and puts a new one on top; sealing is not waited for. */
  async snapshot(): Promise<FrozenLayer> {
    const number = this.#count;
    const next = await createWritableLayer({
      ...layerPlace(this.#place, number),
      uuid: uuidOf(number),
      parentUuid: this.#upper.uuid,
      virtualSize: this.#place.size,
    });
    this.#count++;
    const frozen = this.#upper.freeze();
    const stack = this.#stack.over(frozen);
    await this.#stack.close();
    this.#stack = stack;
    this.#upper = next;
    this.#frozen.push(frozen);
    this.#sealed.push(sealedPath(this.#place, number - 1));
    return frozen;
  }

  /** Waits until all frozen layers are sealed, then opens everything again from its files. */
  async reopen(): Promise<void> {
    await this.close();
    this.#stack = await new LayerPool().openStack(this.#sealed.map(this.#place.openSealed ?? fileLayer));
    this.#upper = await reopenWritableLayer(layerPlace(this.#place, this.#count - 1));
  }

  async settle(): Promise<void> {
    await Promise.all(this.#frozen.map((frozen) => frozen.durable));
    await Promise.all(this.#frozen.map((frozen) => frozen.close()));
    this.#frozen = [];
  }

  async close(): Promise<void> {
    await this.settle();
    await this.#upper.close();
    await this.#stack.close();
  }
}

function uuidOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number + 1).padStart(12, '0')}`;
}

function sealedPath(place: DiskPlace, number: number): string {
  return join(place.folder, `layer-${number}`, 'overlaybd.sealed');
}

function layerPlace(place: DiskPlace, number: number) {
  return {
    folder: join(place.folder, `layer-${number}`),
    pendingPath: join(place.folder, 'run', `pending-${number}`),
    files: place.files ?? hostFiles,
    ...(place.bootId === undefined ? {} : { bootId: place.bootId }),
  };
}
