import { join } from 'node:path';
import type { FrozenLayer, LayerStack, WritableLayer } from '../contract.ts';
import type { LayerFiles } from '../files/contract.ts';
import { fileLayer, LayerPool } from '../stack/pool.ts';
import { createWritableLayer, reopenWritableLayer } from '../writable/open.ts';

/** A chain of layers with a writable one on top, put together as a volume does it, for tests. */
export class Disk {
  readonly #folder: string;
  readonly #size: number;
  readonly #files: LayerFiles | undefined;
  readonly #pool = new LayerPool();
  readonly #sealed: string[] = [];
  #frozen: FrozenLayer[] = [];
  #upper: WritableLayer;
  #stack: LayerStack;
  #count: number;

  private constructor(
    folder: string,
    size: number,
    files: LayerFiles | undefined,
    upper: WritableLayer,
    stack: LayerStack,
  ) {
    this.#folder = folder;
    this.#size = size;
    this.#files = files;
    this.#upper = upper;
    this.#stack = stack;
    this.#count = 1;
  }

  static async create(folder: string, size: number, files?: LayerFiles): Promise<Disk> {
    const upper = await createWritableLayer(placeOf(folder, 0, files, { uuid: uuidOf(0), virtualSize: size }));
    return new Disk(folder, size, files, upper, await new LayerPool().openStack([]));
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

  /** Freezes the writable layer and puts a new one on top; sealing is not waited for. */
  async snapshot(): Promise<FrozenLayer> {
    const number = this.#count++;
    const next = await createWritableLayer(
      placeOf(this.#folder, number, this.#files, {
        uuid: uuidOf(number),
        parentUuid: this.#upper.uuid,
        virtualSize: this.#size,
      }),
    );
    const frozen = this.#upper.freeze();
    const stack = this.#stack.over(frozen);
    await this.#stack.close();
    this.#stack = stack;
    this.#upper = next;
    this.#frozen.push(frozen);
    this.#sealed.push(join(frozen.folder, 'overlaybd.sealed'));
    return frozen;
  }

  /** Waits until all frozen layers are sealed, then opens everything again from its files. */
  async reopen(): Promise<void> {
    await this.settle();
    await this.#upper.close();
    await this.#stack.close();
    this.#stack = await this.#pool.openStack(this.#sealed.map(fileLayer));
    this.#upper = await reopenWritableLayer(placeOf(this.#folder, this.#count - 1, this.#files, {}));
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

function placeOf<T extends object>(folder: string, number: number, files: LayerFiles | undefined, more: T) {
  return {
    folder: join(folder, `layer-${number}`),
    pendingPath: join(folder, `pending-${number}`),
    ...(files === undefined ? {} : { files }),
    ...more,
  };
}
