import { readSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { writeFully } from '@aenv/platform/files/write-fully.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { isCode } from '../../errors/is-code.ts';
import { PART, PARTS_PER_CHUNK, partLength } from '../geometry.ts';
import type { BlobFolder } from './blob-folder.ts';
import type { Chunk } from './chunk.ts';
import type { ChunkFiles } from './chunk-files.ts';
import type { Flusher } from './flusher.ts';
import type { Space, Tenant } from './space.ts';

export interface PartStoreOptions {
  readonly folder: BlobFolder;
  readonly files: ChunkFiles;
  readonly space: Space;
  readonly flusher: Flusher;
  readonly log: Logger;
  readonly isKept: () => boolean;
}

/** The parts of one blob that are on disk. What it gives was checked, or it gives nothing. */
export class PartStore {
  readonly folder: BlobFolder;
  readonly #options: PartStoreOptions;
  readonly #tenants = new Map<Chunk, Tenant>();

  constructor(options: PartStoreOptions) {
    this.folder = options.folder;
    this.#options = options;
    for (const chunk of options.folder.chunks) {
      if (chunk.bytes > 0) options.space.inherit(this.#tenant(chunk));
    }
  }

  has(part: number): boolean {
    return this.folder.known(chunkOf(part))?.parts.present[part % PARTS_PER_CHUNK] === 1;
  }

  /** CRC-32 that a part has, or had when it was here. */
  crcOf(part: number): number | undefined {
    const parts = this.folder.known(chunkOf(part))?.parts;
    const at = part % PARTS_PER_CHUNK;
    return parts?.known[at] === 1 ? parts.crcs[at] : undefined;
  }

  /** Whether a part was checked before and its file is open. */
  isReady(part: number): boolean {
    const chunk = this.folder.known(chunkOf(part));
    return chunk?.file !== undefined && chunk.trusted[part % PARTS_PER_CHUNK] === 1;
  }

  /** Reads a range within one part that is ready. */
  readSync(part: number, target: Uint8Array, within: number): boolean {
    const chunk = this.folder.known(chunkOf(part));
    if (chunk?.file === undefined || !this.isReady(part)) return false;
    chunk.recent = true;
    try {
      const at = (part % PARTS_PER_CHUNK) * PART + within;
      return readSync(chunk.file.fd, target, 0, target.length, at) === target.length;
    } catch {
      // The other way of reading tells what is wrong, and gets it anew.
      return false;
    }
  }

  /**
   * Reads a range within one part.
   * @returns false when it is not here, or was damaged, which takes it away
   */
  async read(part: number, target: Uint8Array, within: number): Promise<boolean> {
    if (!this.has(part)) return false;
    const chunk = this.folder.chunk(chunkOf(part));
    const at = part % PARTS_PER_CHUNK;
    chunk.uses++;
    try {
      chunk.recent = true;
      const file = await this.#options.files.get(chunk, false);
      if (file === undefined) return this.#lost(chunk, undefined);
      if (chunk.trusted[at] === 1) {
        const { bytesRead } = await file.read(target, 0, target.length, at * PART + within);
        return bytesRead === target.length || this.#lost(chunk, part);
      }
      const whole = Buffer.allocUnsafe(partLength(part, this.folder.header.size));
      const { bytesRead } = await file.read(whole, 0, whole.length, at * PART);
      if (bytesRead !== whole.length || crc32(whole) !== chunk.parts.crcs[at]) return this.#lost(chunk, part);
      chunk.trusted[at] = 1;
      target.set(whole.subarray(within, within + target.length));
      return true;
    } catch (error) {
      this.#options.log.warn('a part of a layer cannot be read from the cache', {
        path: chunk.path,
        error: String(error),
      });
      return this.#lost(chunk, part);
    } finally {
      chunk.uses--;
    }
  }

  /** Keeps a part, if there is room. That it is not kept is no failure. */
  async write(part: number, data: Buffer): Promise<void> {
    const { space, files, flusher, log } = this.#options;
    const chunk = this.folder.chunk(chunkOf(part));
    const at = part % PARTS_PER_CHUNK;
    const crc = crc32(data);
    chunk.parts.crcs[at] = crc;
    chunk.parts.known[at] = 1;
    // The checksum is kept in any case.
    flusher.note(this.folder, chunk);
    if (chunk.parts.present[at] === 1 || !space.reserve(PART)) return;
    let kept = false;
    chunk.uses++;
    try {
      const file = await files.get(chunk, true);
      if (file === undefined) return;
      await writeFully(file, data, at * PART);
      if (this.has(part)) return;
      kept = true;
      chunk.parts.present[at] = 1;
      chunk.trusted[at] = 1;
      space.moveIn(this.#tenant(chunk));
      flusher.note(this.folder, chunk);
    } catch (error) {
      if (isCode(error, 'ENOSPC', 'EDQUOT')) space.isFull();
      log.warn('a part of a layer cannot be kept', { path: chunk.path, error: String(error) });
    } finally {
      if (!kept) space.release(PART);
      chunk.uses--;
    }
  }

  /** A part is not what it should be; unless the whole blob was verified, neither is its checksum. */
  distrust(part: number): void {
    const chunk = this.folder.known(chunkOf(part));
    if (chunk === undefined) return;
    if (!this.folder.header.verified) chunk.parts.known[part % PARTS_PER_CHUNK] = 0;
    if (this.has(part)) this.#lost(chunk, part);
    else this.#options.flusher.note(this.folder, chunk);
  }

  /** Takes everything away, also what is known of it. */
  async clear(): Promise<void> {
    for (const chunk of this.folder.chunks) {
      this.#options.space.leave(chunk);
      this.#tenants.delete(chunk);
      chunk.parts.known.fill(0);
      await this.#evict(chunk);
    }
  }

  /** What was believed to be there is not: all of a file, or one part. */
  #lost(chunk: Chunk, part: number | undefined): false {
    this.#options.log.warn('a part of a layer has gone from the cache', { path: chunk.path });
    if (part === undefined) {
      this.#options.space.release(chunk.bytes);
      chunk.forget();
    } else if (chunk.parts.present[part % PARTS_PER_CHUNK] === 1) {
      this.#options.space.release(PART);
      chunk.parts.present[part % PARTS_PER_CHUNK] = 0;
      chunk.trusted[part % PARTS_PER_CHUNK] = 0;
    }
    this.#options.flusher.note(this.folder, chunk);
    return false;
  }

  #tenant(chunk: Chunk): Tenant {
    const known = this.#tenants.get(chunk);
    if (known !== undefined) return known;
    const tenant = { chunk, isKept: this.#options.isKept, evict: () => this.#evict(chunk) };
    this.#tenants.set(chunk, tenant);
    return tenant;
  }

  #evict(chunk: Chunk): Promise<void> {
    chunk.forget();
    chunk.evicting = (async () => {
      // First the index: a file that it does not know does no harm.
      await this.folder.writeEntries([chunk]);
      await this.#options.files.close(chunk);
      await rm(chunk.path, { force: true });
    })().finally(() => {
      chunk.evicting = undefined;
    });
    return chunk.evicting;
  }
}

function chunkOf(part: number): number {
  return Math.floor(part / PARTS_PER_CHUNK);
}
