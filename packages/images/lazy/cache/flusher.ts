import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { BlobFolder } from './blob-folder.ts';
import type { Chunk } from './chunk.ts';
import type { ChunkFiles } from './chunk-files.ts';
import type { ChunkParts } from './index-entry.ts';

export interface FlusherOptions {
  readonly files: ChunkFiles;
  readonly log: Logger;
  /** `ms` after which parts are made durable */
  readonly delayMs: number;
}

/** Writes to the indexes what has come, some time later and only after the data itself is on stable storage. */
export class Flusher {
  readonly #options: FlusherOptions;
  readonly #dirty = new Map<BlobFolder, Set<Chunk>>();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(options: FlusherOptions) {
    this.#options = options;
  }

  note(folder: BlobFolder, chunk: Chunk): void {
    const chunks = this.#dirty.get(folder) ?? new Set();
    this.#dirty.set(folder, chunks.add(chunk));
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch((error: unknown) => {
        this.#options.log.warn('the cache of layers cannot be made durable', { error: String(error) });
      });
    }, this.#options.delayMs).unref();
  }

  /** Its files are removed. */
  forget(folder: BlobFolder): void {
    this.#dirty.delete(folder);
  }

  /** Makes durable what has come until now. */
  async flush(): Promise<void> {
    await this.#running;
    this.#running = this.#flush().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.flush();
    clearTimeout(this.#timer);
  }

  async #flush(): Promise<void> {
    const all = [...this.#dirty];
    this.#dirty.clear();
    for (const [folder, chunks] of all) {
      const entries: { number: number; parts: ChunkParts }[] = [];
      for (const chunk of chunks) {
        const parts = await this.#synced(chunk);
        if (parts !== undefined) entries.push({ number: chunk.number, parts });
      }
      if (entries.length > 0) await folder.writeEntries(entries);
    }
  }

  /** What was there before the sync that has just ended; undefined for a chunk that was evicted meanwhile. */
  async #synced(chunk: Chunk): Promise<ChunkParts | undefined> {
    chunk.uses++;
    try {
      await chunk.evicting;
      const { present, known, crcs } = chunk.parts;
      const parts = { present: present.slice(), known: known.slice(), crcs: crcs.slice() };
      if (chunk.bytes === 0) return parts;
      const file = await this.#options.files.get(chunk, false);
      if (file === undefined) return undefined;
      await file.datasync();
      return parts;
    } finally {
      chunk.uses--;
    }
  }
}
