import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { HEADER_SIZE, SEGMENT_SIZE } from '../../lsmt/format.ts';
import { MAX_DATA_SECTORS, type SectorMap } from '../../lsmt/sector-map.ts';
import { type Durability, type FrozenLayer, type LayerPart, SECTOR_SIZE, type WritableLayer } from '../contract.ts';
import type { LayerFiles, RandomFile } from '../files/contract.ts';
import { EntryQueue } from './entry-queue.ts';
import { layerPaths } from './paths.ts';
import type { PendingLog } from './pending-log.ts';
import { SealingLayer } from './sealing-layer.ts';
import { SyncRounds } from './sync-rounds.ts';

/** Bytes that may be unsynced before they are synced in the background, so that no flush has to wait for more. */
const BACKGROUND_SYNC = 64 * 2 ** 20;

/** Bytes of entries that may be unsynced: those of zeros, which come without data, fill the memory of the host. */
const BACKGROUND_SYNC_ENTRIES = 4 * 2 ** 20;

/** What can be opened again; more than that is refused while it can be. */
export interface LayerLimits {
  /** entries of the index log */
  readonly logEntries: number;
  /** segments of the sealed layer */
  readonly segments: number;
}

/** What a writable layer is made of when its files are open. */
export interface AppendLayerParts {
  readonly limits: LayerLimits;
  readonly folder: string;
  readonly uuid: string;
  readonly parentUuid: string;
  readonly userTag: string;
  /** bytes */
  readonly virtualSize: number;
  readonly files: LayerFiles;
  readonly data: RandomFile;
  readonly index: RandomFile;
  readonly pending: PendingLog;
  readonly map: SectorMap;
  /** where the next data goes, in bytes, a multiple of 512 */
  readonly dataEnd: number;
  /** where the next entry goes in the index file */
  readonly indexEnd: number;
  /** entries of the pending log */
  readonly pendingEntries: Uint8Array;
}

/**
 * The writable layer. Data is appended to the data file, and its index entry to the pending log; entries reach the index
 * file only when their data is on the disk. So the index needs no checksums, and after a power cut the layer is what it was
 * at the last completed sync.
 */
export class AppendLayer implements WritableLayer {
  readonly folder: string;
  readonly uuid: string;
  readonly virtualSize: number;
  readonly #parts: AppendLayerParts;
  readonly #queue = new EntryQueue();
  readonly #rounds = new SyncRounds(() => this.#sync());
  #dataEnd: number;
  #indexEnd: number;
  #unsynced = 0;
  #failure: AenvError | undefined;
  #state: 'open' | 'frozen' | 'closed' = 'open';

  constructor(parts: AppendLayerParts) {
    this.#parts = parts;
    this.folder = parts.folder;
    this.uuid = parts.uuid;
    this.virtualSize = parts.virtualSize;
    this.#dataEnd = parts.dataEnd;
    this.#indexEnd = parts.indexEnd;
    this.#queue.addBytes(parts.pendingEntries);
    if (parts.pendingEntries.length > 0) this.#rounds.wrote();
  }

  get usage(): { readonly total: number; readonly live: number } {
    return { total: this.#dataEnd, live: this.#parts.map.liveSectors * SECTOR_SIZE };
  }

  write(data: Uint8Array, offset: number): void {
    this.#append([data], [{ data, offset }], data.length);
  }

  writeMany(writes: readonly { readonly data: Uint8Array; readonly offset: number }[]): void {
    let length = 0;
    for (const write of writes) length += write.data.length;
    this.#append(
      writes.map((write) => write.data),
      writes,
      length,
    );
  }

  zero(offset: number, length: number): void {
    this.#check(offset, length);
    if (length === 0) return;
    const [sector, count] = [offset / SECTOR_SIZE, length / SECTOR_SIZE];
    const before = this.#queue.length;
    this.#queue.addZero(sector, count, this.#dataEnd / SECTOR_SIZE);
    this.#logFrom(before);
    this.#parts.map.setZero(sector, count);
    this.#wrote(0);
  }

  lookup(offset: number, length: number, part: LayerPart): void {
    this.#parts.map.forEach(offset / SECTOR_SIZE, length / SECTOR_SIZE, (sector, count, place, zeroed) =>
      part(sector * SECTOR_SIZE, count * SECTOR_SIZE, place * SECTOR_SIZE, zeroed),
    );
  }

  readDataSync(target: Uint8Array, dataOffset: number): void {
    this.#parts.data.readSync(target, dataOffset);
  }

  async flush(durability: Durability): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    // What is written is in the page cache already.
    if (durability === 'relaxed') return;
    this.#mustBeOpen();
    await this.#rounds.sync();
    if (this.#failure !== undefined) throw this.#failure;
  }

  freeze(): FrozenLayer {
    this.#mustBeOpen();
    this.#state = 'frozen';
    const { files, data, index, pending, map, parentUuid, userTag, limits } = this.#parts;
    return new SealingLayer({
      folder: this.folder,
      uuid: this.uuid,
      parentUuid,
      userTag,
      virtualSize: this.virtualSize,
      files,
      data,
      map,
      maxSegments: limits.segments,
      dataEnd: this.#dataEnd,
      synced: async () => {
        await this.#rounds.sync();
        if (this.#failure !== undefined) throw this.#failure;
      },
      removeLogs: async () => {
        await Promise.all([index.close(), pending.remove()]);
        await files.remove(layerPaths(this.folder).index);
      },
      closeLogs: async () => {
        await Promise.all([index.close(), pending.close()]);
      },
    });
  }

  async close(): Promise<void> {
    if (this.#state !== 'open') return;
    this.#state = 'closed';
    await this.#rounds.settle();
    await Promise.all([this.#parts.data.close(), this.#parts.index.close(), this.#parts.pending.close()]);
  }

  #append(
    data: readonly Uint8Array[],
    writes: readonly { readonly data: Uint8Array; readonly offset: number }[],
    length: number,
  ): void {
    for (const write of writes) this.#check(write.offset, write.data.length);
    if (length === 0) return;
    let place = this.#dataEnd / SECTOR_SIZE;
    if (place + length / SECTOR_SIZE > MAX_DATA_SECTORS) throw new AenvError('no_space', 'a layer holds at most 1 TiB');
    this.#parts.data.writeSync(data, this.#dataEnd);
    const before = this.#queue.length;
    for (const write of writes) {
      const count = write.data.length / SECTOR_SIZE;
      this.#queue.addData(write.offset / SECTOR_SIZE, count, place);
      place += count;
    }
    this.#logFrom(before);
    place = this.#dataEnd / SECTOR_SIZE;
    for (const write of writes) {
      const count = write.data.length / SECTOR_SIZE;
      this.#parts.map.setData(write.offset / SECTOR_SIZE, count, place);
      place += count;
    }
    this.#dataEnd += length;
    this.#wrote(length);
  }

  #wrote(bytes: number): void {
    this.#rounds.wrote();
    this.#unsynced += bytes;
    const isMuch = this.#unsynced >= BACKGROUND_SYNC || this.#queue.length >= BACKGROUND_SYNC_ENTRIES;
    // A failure is kept and told to whoever writes or flushes next.
    if (isMuch && !this.#rounds.isRunning) this.#rounds.sync().catch(() => {});
  }

  /** Logs the entries that were queued last; without them in the log the write has not happened. */
  #logFrom(before: number): void {
    try {
      if (this.#indexEnd - HEADER_SIZE + this.#queue.length > this.#parts.limits.logEntries * SEGMENT_SIZE) {
        throw new AenvError(
          'no_space',
          `the layer in ${this.folder} was written too often; a snapshot begins a new one`,
        );
      }
      this.#parts.pending.append(this.#queue.bytes(before));
    } catch (error) {
      this.#queue.shrinkTo(before);
      throw error;
    }
  }

  /** Data first, then the entries that point at it. */
  async #sync(): Promise<void> {
    const { data, index, pending } = this.#parts;
    const length = this.#queue.length;
    this.#unsynced = 0;
    await this.#mustSync(data);
    // A failure to write, as when the disk is full, loses nothing: the entries are still queued and in the pending log.
    await index.write(this.#queue.bytes(0, length).slice(), this.#indexEnd);
    await this.#mustSync(index);
    this.#indexEnd += length;
    this.#queue.dropFirst(length);
    await pending.keepOnly(() => this.#queue.bytes());
  }

  /** What a sync that failed has left on the disk, nobody knows: the host forgets it, a second one would succeed. */
  async #mustSync(file: RandomFile): Promise<void> {
    try {
      await file.sync();
    } catch (error) {
      const message = `the layer in ${this.folder} could not be synced: ${AenvError.from(error).message}`;
      this.#failure ??= new AenvError('io_failed', message, { cause: error });
      throw this.#failure;
    }
  }

  #check(offset: number, length: number): void {
    this.#mustBeOpen();
    if (this.#failure !== undefined) throw this.#failure;
    if (offset % SECTOR_SIZE !== 0 || length % SECTOR_SIZE !== 0 || offset < 0 || offset + length > this.virtualSize) {
      throw new RangeError(`bytes ${offset}..${offset + length} of a disk of ${this.virtualSize}, in sectors of 512`);
    }
  }

  #mustBeOpen(): void {
    if (this.#state !== 'open') throw new AenvError('internal', `the layer in ${this.folder} is ${this.#state}`);
  }
}
