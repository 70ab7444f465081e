import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Clock, systemClock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { BlobHandle } from './blob-handle.ts';
import { BlobFolder, folderName } from './cache/blob-folder.ts';
import { ChunkFiles } from './cache/chunk-files.ts';
import { Flusher } from './cache/flusher.ts';
import { PartStore } from './cache/part-store.ts';
import { Space } from './cache/space.ts';
import { CachedBlob } from './cached-blob.ts';
import type { Priority, RangeOrigin } from './fetch/origin.ts';
import { PatientFetch } from './fetch/patient-fetch.ts';
import { FetchQueue, type QueueLimits } from './fetch/queue.ts';
import { MAX_BLOB } from './geometry.ts';

export interface BlobCacheOptions {
  /** folder of its own; one process at a time */
  readonly root: string;
  readonly capacityBytes: number;
  /** space that the file system keeps free */
  readonly keepFreeBytes: number;
  /** `ms` without an answer after which a read fails with `layer_unavailable` */
  readonly offlineAfterMs: number;
  readonly log: Logger;
  readonly clock?: Clock;
  /** requests at the same time: default 64, 8 for one blob, 4 that nobody waits for */
  readonly limits?: Partial<QueueLimits>;
  /** `ms` of one attempt; default 15 s */
  readonly attemptMs?: number;
  /** `ms` after which parts are made durable; default 2 s */
  readonly flushAfterMs?: number;
  readonly openFiles?: number;
  readonly freeBytes?: (root: string) => Promise<number>;
}

export interface OpenOptions {
  readonly digest: string;
  readonly size: number;
  readonly origin: RangeOrigin;
  /** `background`: reads through this handle come after those that guests wait for */
  readonly priority?: Priority;
}

/** A blob that is or was open, with those who have it open. */
interface Shared {
  readonly blob: CachedBlob;
  readonly handles: Set<OpenOptions>;
}

/** Blobs that are read in parts, from wherever they are, through a bounded folder on disk. */
export class BlobCache {
  readonly #options: BlobCacheOptions;
  readonly #files: ChunkFiles;
  readonly #flusher: Flusher;
  readonly #space: Space;
  readonly #queue: FetchQueue;
  readonly #end = new AbortController();
  readonly #stores = new Map<string, PartStore>();
  readonly #open = new Map<string, Shared>();
  readonly #creating = new Map<string, Promise<PartStore>>();
  #fetchedBytes = 0;

  private constructor(options: BlobCacheOptions) {
    const { root, capacityBytes, keepFreeBytes, log, freeBytes } = options;
    this.#options = options;
    this.#files = new ChunkFiles(options.openFiles ?? 512);
    this.#flusher = new Flusher({ files: this.#files, log, delayMs: options.flushAfterMs ?? 2000 });
    this.#space = new Space({ root, capacityBytes, keepFreeBytes, ...(freeBytes === undefined ? {} : { freeBytes }) });
    this.#queue = new FetchQueue({ requests: 64, perBlob: 8, background: 4, ...options.limits });
  }

  /** Takes over what an earlier process has left; what cannot be used of it is removed. */
  static async start(options: BlobCacheOptions): Promise<BlobCache> {
    const cache = new BlobCache(options);
    await mkdir(options.root, { recursive: true, mode: 0o700 });
    for (const name of await readdir(options.root)) {
      const path = join(options.root, name);
      const folder = await BlobFolder.load(path);
      if (folder === undefined) await rm(path, { recursive: true, force: true });
      else cache.#stores.set(folder.header.digest, cache.#store(folder));
    }
    cache.#space.tidy();
    return cache;
  }

  /** Bytes that are kept, and that were fetched since the start. */
  get usage(): { readonly usedBytes: number; readonly fetchedBytes: number } {
    return { usedBytes: this.#space.usedBytes, fetchedBytes: this.#fetchedBytes };
  }

  /** @throws AenvError `layer_corrupt` for a size that no blob can have, or another than before; `image_invalid` */
  async open(options: OpenOptions): Promise<BlobHandle> {
    const { digest, size } = options;
    if (!Number.isSafeInteger(size) || size < 0 || size > MAX_BLOB) {
      throw new AenvError('layer_corrupt', `blob ${digest} cannot have ${size} bytes`);
    }
    this.#end.signal.throwIfAborted();
    const store = await this.#storeOf(digest, size);
    let shared = this.#open.get(digest);
    if (shared === undefined || (shared.blob.isCorrupt && shared.handles.size === 0)) {
      const handles = new Set<OpenOptions>();
      shared = { handles, blob: this.#blob(store, handles) };
      this.#open.set(digest, shared);
    }
    const { handles, blob } = shared;
    handles.add(options);
    return new BlobHandle(blob, options.priority ?? 'foreground', () => handles.delete(options));
  }

  /** Whether all of a blob was once here and had its digest. */
  isVerified(digest: string): boolean {
    return this.#stores.get(digest)?.folder.header.verified === true;
  }

  /** Removes what is kept of a blob. @returns false when it is open */
  async remove(digest: string): Promise<boolean> {
    const shared = this.#open.get(digest);
    if (shared !== undefined && shared.handles.size > 0) return false;
    await shared?.blob.idle();
    if (shared !== undefined && shared.handles.size > 0) return false;
    this.#open.delete(digest);
    const store = this.#stores.get(digest);
    this.#stores.delete(digest);
    if (store !== undefined) {
      await store.clear();
      this.#flusher.forget(store.folder);
      // A flush that has begun still has the folder.
      await this.#flusher.flush();
      await store.folder.remove();
    }
    return true;
  }

  /** Waits for all requests, makes durable what has come, and waits for evictions. */
  async settle(): Promise<void> {
    await this.#queue.drained();
    await this.#flusher.flush();
    await this.#space.settled();
  }

  /** Reads under way fail; what has come is kept. */
  async close(): Promise<void> {
    this.#end.abort(new AenvError('layer_unavailable', 'the cache of layers is closed'));
    await this.#queue.drained();
    await this.#flusher.close();
    await this.#space.settled();
    await this.#files.closeAll();
  }

  async #storeOf(digest: string, size: number): Promise<PartStore> {
    const known = this.#stores.get(digest);
    if (known !== undefined) {
      if (known.folder.header.size === size) return known;
      throw new AenvError('layer_corrupt', `blob ${digest} has ${known.folder.header.size} bytes, and not ${size}`);
    }
    const creating = this.#creating.get(digest) ?? this.#create(digest, size);
    this.#creating.set(digest, creating);
    await creating.finally(() => this.#creating.delete(digest));
    return this.#storeOf(digest, size);
  }

  async #create(digest: string, size: number): Promise<PartStore> {
    folderName(digest);
    const store = this.#store(await BlobFolder.create(this.#options.root, digest, size));
    this.#stores.set(digest, store);
    return store;
  }

  #store(folder: BlobFolder): PartStore {
    const { log } = this.#options;
    const isKept = () => folder.header.verified;
    return new PartStore({ folder, files: this.#files, space: this.#space, flusher: this.#flusher, log, isKept });
  }

  #blob(store: PartStore, handles: ReadonlySet<OpenOptions>): CachedBlob {
    const { clock = systemClock, offlineAfterMs, attemptMs = 15_000 } = this.#options;
    return new CachedBlob({
      store,
      queue: this.#queue,
      patience: new PatientFetch({ clock, offlineAfterMs, attemptMs, signal: this.#end.signal }),
      // Who has come last knows best.
      origins: () => [...handles].reverse().map(({ origin }) => origin),
      onFetched: (bytes) => {
        this.#fetchedBytes += bytes;
      },
    });
  }
}
