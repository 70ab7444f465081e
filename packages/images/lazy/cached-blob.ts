import { crc32 } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { PartStore } from './cache/part-store.ts';
import type { Priority, RangeOrigin } from './fetch/origin.ts';
import type { PatientFetch } from './fetch/patient-fetch.ts';
import { BlobQueue, type FetchQueue } from './fetch/queue.ts';
import { ReadAhead } from './fetch/read-ahead.ts';
import { PART, partLength, partsOf } from './geometry.ts';

export interface CachedBlobOptions {
  readonly store: PartStore;
  readonly queue: FetchQueue;
  readonly patience: PatientFetch;
  /** best first; asked anew for each attempt */
  readonly origins: () => readonly RangeOrigin[];
  readonly onFetched: (bytes: number) => void;
}

/** One blob behind the cache, shared by all who have it open. */
export class CachedBlob {
  readonly store: PartStore;
  readonly size: number;
  readonly #options: CachedBlobOptions;
  readonly #queue: BlobQueue;
  readonly #readAhead = new ReadAhead();
  #corrupt: AenvError | undefined;

  constructor(options: CachedBlobOptions) {
    this.store = options.store;
    this.size = options.store.folder.header.size;
    this.#options = options;
    this.#queue = new BlobQueue(options.queue, (first, count, arrived) => this.#fetch(first, count, arrived));
  }

  /** Reads what is in the cache and was checked already. */
  readSync(target: Uint8Array, offset: number): boolean {
    if (this.#corrupt !== undefined) throw this.#corrupt;
    const { first, last } = partsOf(offset, target.length);
    // The target stays as it is unless all of it is here.
    for (let part = first; part <= last; part++) if (!this.store.isReady(part)) return false;
    for (let part = first; part <= last; part++) {
      const [begin, end] = slice(part, offset, target.length);
      const within = offset + begin - part * PART;
      if (!this.store.readSync(part, target.subarray(begin, end), within)) return false;
    }
    return true;
  }

  async read(target: Uint8Array, offset: number, priority: Priority): Promise<void> {
    if (this.#corrupt !== undefined) throw this.#corrupt;
    const { first, last } = partsOf(offset, target.length);
    if (priority === 'foreground') this.#fetchAhead(first, last);
    const reads: Promise<void>[] = [];
    for (let part = first; part <= last; part++) {
      const [begin, end] = slice(part, offset, target.length);
      reads.push(this.#readPart(part, target.subarray(begin, end), offset + begin - part * PART, priority));
    }
    // All of them, so that none writes to the target after this has failed.
    for (const result of await Promise.allSettled(reads)) if (result.status === 'rejected') throw result.reason;
  }

  /** What is kept of a range is damaged: it is fetched anew. Unless all of it was verified, so are its checksums. */
  async distrust(offset: number, length: number): Promise<void> {
    const { first, last } = partsOf(offset, length);
    await this.#queue.settled(first, last);
    for (let part = first; part <= last; part++) this.store.distrust(part);
  }

  get isCorrupt(): boolean {
    return this.#corrupt !== undefined;
  }

  /** Resolves when nothing is being fetched any more. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** From now on nothing of it is given out. */
  condemn(error: AenvError): void {
    this.#corrupt = error;
  }

  async #readPart(part: number, target: Uint8Array, within: number, priority: Priority): Promise<void> {
    if (await this.store.read(part, target, within)) return;
    const data = await this.#queue.want(part, priority);
    if (this.#corrupt !== undefined) throw this.#corrupt;
    target.set(data.subarray(within, within + target.length));
  }

  /** Who reads on from where something is already will go on reading: more is fetched than was asked for. */
  #fetchAhead(first: number, last: number): void {
    const there = (part: number) => this.store.has(part) || this.#queue.has(part);
    let miss = first;
    while (miss <= last && this.store.has(miss)) miss++;
    if (miss > last) return;
    const end = this.#readAhead.upTo(miss, miss > 0 && there(miss - 1));
    for (let part = last + 1; part < Math.min(end, Math.ceil(this.size / PART)); part++) {
      if (!there(part)) void this.#queue.want(part, 'background');
    }
  }

  async #fetch(first: number, count: number, arrived: (part: number, data: Buffer) => void): Promise<void> {
    const end = first + count;
    const writes: Promise<void>[] = [];
    let next = first;
    try {
      await this.#options.patience.run(this.#options.origins, async (origin, signal) => {
        const offset = next * PART;
        const target = Buffer.allocUnsafe(Math.min(this.size, end * PART) - offset);
        const take = (filled: number) => {
          for (; next < end; next++) {
            const from = next * PART - offset;
            const to = from + partLength(next, this.size);
            if (to > filled) return;
            // A copy, since a further host may write to the target again.
            const data = Buffer.from(target.subarray(from, to));
            this.#check(next, data, origin);
            arrived(next, data);
            this.#options.onFetched(data.length);
            writes.push(this.store.write(next, data));
          }
        };
        await origin.read(target, offset, signal, take);
        take(target.length);
      });
    } finally {
      await Promise.all(writes);
    }
  }

  /** A blob never changes, so neither do the parts that were evicted. */
  #check(part: number, data: Buffer, origin: RangeOrigin): void {
    const crc = this.store.crcOf(part);
    if (crc === undefined || crc === crc32(data)) return;
    const { digest } = this.store.folder.header;
    throw new AenvError(
      'digest_mismatch',
      `${origin.name} gives other bytes of blob ${digest} than before, at ${part * PART}`,
    );
  }
}

/** Which bytes of a target a part fills. */
function slice(part: number, offset: number, length: number): [number, number] {
  return [Math.max(0, part * PART - offset), Math.min(length, (part + 1) * PART - offset)];
}
