import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFully } from '@aenv/platform/files/write-fully.ts';
import type { OciLayer } from '../oci/find-image.ts';

export interface LayerSpoolOptions {
  /** folder for files that last as long as this does */
  readonly dir: string;
  /** bytes of layers that wait for their turn; a layer that does not fit is fetched when its turn comes */
  readonly maxBytes: number;
  /** layers that are fetched at the same time, that which is read included */
  readonly atOnce: number;
  readonly onFetched: (bytes: number) => void;
  /** for readers that bring none of their own */
  readonly signal?: AbortSignal | undefined;
}

const READ = 256 * 1024;

/**
 * Fetches the next layers of an image while one is being read. Reading layer n lets those above it come into files; which
 * ones are needed at all shows by then, since layers that are known already are below.
 */
export class LayerSpool {
  /** The layers to be read instead of the original ones, each from its file where there is one. */
  readonly layers: readonly OciLayer[];
  readonly #sources: readonly OciLayer[];
  readonly #options: LayerSpoolOptions;
  readonly #end = new AbortController();
  readonly #waiting = new Map<number, SpoolFile>();
  #fetching = 0;
  #reserved = 0;
  #next = 0;

  constructor(layers: readonly OciLayer[], options: LayerSpoolOptions) {
    this.#sources = layers;
    this.#options = options;
    this.layers = layers.map((layer, at) => ({
      ...layer,
      open: (signal) => this.#read(at, layer, signal ?? options.signal),
    }));
  }

  /** Ends what is being fetched and removes all files. */
  async close(): Promise<void> {
    this.#end.abort(new Error('the layer is not needed any more'));
    for (const file of this.#waiting.values()) await file.close();
    this.#waiting.clear();
  }

  async *#read(at: number, layer: OciLayer, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const file = this.#waiting.get(at);
    this.#next = Math.max(this.#next, at + 1);
    if (file !== undefined) {
      try {
        yield* file.follow(signal);
      } finally {
        this.#waiting.delete(at);
        this.#reserved -= layer.sizeBytes;
        await file.close();
      }
      return;
    }
    this.#fetching++;
    try {
      this.#fetchMore();
      for await (const chunk of layer.open(signal)) {
        this.#options.onFetched(chunk.length);
        yield chunk;
      }
    } finally {
      this.#fetching--;
      this.#fetchMore();
    }
  }

  #fetchMore(): void {
    while (this.#fetching < this.#options.atOnce && !this.#end.signal.aborted) {
      const layer = this.#sources[this.#next];
      if (layer === undefined || this.#reserved + layer.sizeBytes > this.#options.maxBytes) return;
      const file = new SpoolFile(join(this.#options.dir, `layer-${randomBytes(8).toString('hex')}`));
      this.#waiting.set(this.#next++, file);
      this.#reserved += layer.sizeBytes;
      this.#fetching++;
      void file.fill(layer.open(this.#end.signal), this.#options.onFetched).finally(() => {
        this.#fetching--;
        this.#fetchMore();
      });
    }
  }
}

/** A file that is read while it is still being written. */
class SpoolFile {
  readonly #path: string;
  #file: FileHandle | undefined;
  #filling: Promise<void> | undefined;
  #written = 0;
  #outcome: { readonly error?: unknown } | undefined;
  #changed = Promise.withResolvers<void>();

  constructor(path: string) {
    this.#path = path;
  }

  /** Never rejects: who reads the file gets the error. */
  fill(source: AsyncIterable<Uint8Array>, onFetched: (bytes: number) => void): Promise<void> {
    this.#filling = this.#fill(source, onFetched).then(
      () => this.#settle({}),
      (error: unknown) => this.#settle({ error }),
    );
    return this.#filling;
  }

  async *follow(signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
    for (let at = 0; ; ) {
      signal?.throwIfAborted();
      const there = this.#written - at;
      if (there > 0 && this.#file !== undefined) {
        const chunk = Buffer.allocUnsafe(Math.min(READ, there));
        const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, at);
        at += bytesRead;
        yield chunk.subarray(0, bytesRead);
      } else if (this.#outcome === undefined) await this.#next(signal);
      else if (this.#outcome.error !== undefined) throw this.#outcome.error;
      else return;
    }
  }

  async close(): Promise<void> {
    await this.#filling;
    await this.#file?.close();
    this.#file = undefined;
    await rm(this.#path, { force: true });
  }

  async #fill(source: AsyncIterable<Uint8Array>, onFetched: (bytes: number) => void): Promise<void> {
    await mkdir(join(this.#path, '..'), { recursive: true, mode: 0o700 });
    this.#file = await open(this.#path, 'wx+', 0o600);
    for await (const chunk of source) {
      await writeFully(this.#file, chunk, this.#written);
      this.#written += chunk.length;
      onFetched(chunk.length);
      this.#wake();
    }
  }

  #settle(outcome: { readonly error?: unknown }): void {
    this.#outcome = outcome;
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #next(signal: AbortSignal | undefined): Promise<void> {
    if (signal === undefined) return this.#changed.promise;
    const aborted = Promise.withResolvers<void>();
    const onAbort = () => aborted.resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([this.#changed.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
