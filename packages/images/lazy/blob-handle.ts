import type { BlobSource } from '@aenv/block/blob/contract.ts';
import { checkRange } from '@aenv/block/blob/range.ts';
import type { CachedBlob } from './cached-blob.ts';
import type { Priority } from './fetch/origin.ts';

/** A blob of the cache as one user of it sees it. */
export class BlobHandle implements BlobSource {
  readonly blob: CachedBlob;
  readonly #priority: Priority;
  #release: (() => void) | undefined;

  constructor(blob: CachedBlob, priority: Priority, release: () => void) {
    this.blob = blob;
    this.#priority = priority;
    this.#release = release;
  }

  get size(): number {
    return this.blob.size;
  }

  readSync(target: Uint8Array, offset: number): boolean {
    checkRange(this, target, offset);
    return target.length === 0 || this.blob.readSync(target, offset);
  }

  async read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void> {
    checkRange(this, target, offset);
    signal?.throwIfAborted();
    if (target.length === 0) return;
    if (signal === undefined) return this.blob.read(target, offset, this.#priority);
    // The request goes on, for the next one who asks; but nothing is written to a target that was given up.
    const own = Buffer.allocUnsafe(target.length);
    const { promise, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([this.blob.read(own, offset, this.#priority), promise]);
      target.set(own);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  async distrust(offset: number, length: number): Promise<void> {
    if (length > 0) await this.blob.distrust(offset, length);
  }

  close(): Promise<void> {
    this.#release?.();
    this.#release = undefined;
    return Promise.resolve();
  }
}
