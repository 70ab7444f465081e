import { createHash, randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { HEADER_SIZE, INDEX_ALIGNMENT, SEGMENT_SIZE } from '@aenv/block/lsmt/format.ts';
import { encodeHeader } from '@aenv/block/lsmt/header.ts';
import { serialiseIndex } from '@aenv/block/lsmt/sealed-index.ts';
import { SegmentIndexBuilder, ZEROED } from '@aenv/block/lsmt/segment-index.ts';
import { inSlices } from '@aenv/block/lsmt/slices.ts';
import { type MemorySink, PAGE_SIZE } from '@aenv/vmm/contract/micro-vm.ts';
import type { MemoryDelta } from '../../contract.ts';
import { readFully } from '../bases/pages.ts';
import { AppendFile } from './append-file.ts';

export const SECTOR_SIZE = 512;
const CHUNK = 256 * 1024;
/** What is made ahead beyond the pages that are there: for those that are written until the guest stands still, and the index. */
const AHEAD = 2 ** 20;
/** More than this is not made ahead of a capture: what is not needed after all was written for nothing. */
const MOST_AHEAD = 128 * 2 ** 20;

export interface DeltaWriterOptions {
  readonly path: string;
  /** bytes of the guest's memory */
  readonly memoryBytes: number;
  /** Whether the base has zeros in all of the range: then zeros are no difference. */
  readonly isZeroInBase: (offset: number, length: number) => boolean;
}

/**
 * Writes the pages that differ from a memory base as a layer of the disk format (LSMT): header, pages in ascending order,
 * index, trailer. The guest stands still meanwhile, so pages are only copied and written; the disk is not waited for and
 * nothing is hashed before `finish`.
 */
export class DeltaWriter implements MemorySink {
  readonly #options: DeltaWriterOptions;
  readonly #file: AppendFile;
  readonly #index = new SegmentIndexBuilder(1024);
  /** end of the last page in guest memory */
  #reached = 0;
  #dataBytes = 0;
  #zeroBytes = 0;

  private constructor(options: DeltaWriterOptions, file: AppendFile) {
    this.#options = options;
    this.#file = file;
  }

  /** @throws AenvError `no_space`, `io_failed` */
  static async create(options: DeltaWriterOptions): Promise<DeltaWriter> {
    const file = await AppendFile.create(options.path);
    await file.append(encodeHeader({ isSealed: true, uuid: randomUUID(), virtualSize: options.memoryBytes }));
    return new DeltaWriter(options, file);
  }

  /** Bytes of guest memory that differ from the base. */
  get changedBytes(): number {
    return this.#dataBytes + this.#zeroBytes;
  }

  /**
   * Makes room in memory for so many bytes of pages, so that the guest need not stand still for it. Before the first page.
   * @throws AenvError `no_space`, `io_failed`
   */
  async expect(bytes: number): Promise<void> {
    await this.#file.makeAhead(Math.min(bytes + AHEAD, MOST_AHEAD));
  }

  data(offset: number, bytes: Uint8Array): undefined | Promise<void> {
    this.#advance(offset, bytes.length);
    this.#index.appendJoined(offset / SECTOR_SIZE, bytes.length / SECTOR_SIZE, this.#file.size / SECTOR_SIZE, 0);
    this.#dataBytes += bytes.length;
    return this.#file.append(bytes);
  }

  zero(offset: number, length: number): void {
    this.#advance(offset, length);
    if (this.#options.isZeroInBase(offset, length)) return;
    this.#zeroBytes += length;
    // A place inside the file, as readers of the format want it also of zeros.
    this.#index.appendJoined(offset / SECTOR_SIZE, length / SECTOR_SIZE, HEADER_SIZE / SECTOR_SIZE, ZEROED);
  }

  /**
   * Ends the file: it can be read.
   * @throws AenvError `no_space`, `io_failed`
   */
  async seal(): Promise<void> {
    const indexOffset = this.#file.size;
    const index = await inSlices(serialiseIndex(this.#index.finish(), INDEX_ALIGNMENT));
    await this.#file.append(index);
    const place = { indexOffset, indexCount: index.length / SEGMENT_SIZE };
    const virtualSize = this.#options.memoryBytes;
    await this.#file.append(encodeHeader({ isHeader: false, isSealed: true, ...place, virtualSize }));
    await this.#file.written();
  }

  /**
   * @param durable whether to wait until the sealed file is on the disk
   * @throws AenvError `no_space`, `io_failed`
   */
  async describe(durable: boolean): Promise<Omit<MemoryDelta, 'file'>> {
    const [sums] = await Promise.all([this.#sums(), durable ? this.#file.sync() : undefined]);
    return { sizeBytes: this.#file.size, ...sums, dataBytes: this.#dataBytes, zeroBytes: this.#zeroBytes };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  /** From the page cache, after the guest runs again. */
  async #sums(): Promise<{ digest: string; crc32: number }> {
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(CHUNK);
    let crc = 0;
    for (let at = 0; at < this.#file.size; at += CHUNK) {
      const bytes = buffer.subarray(0, Math.min(CHUNK, this.#file.size - at));
      await readFully(this.#file.handle, bytes, at, this.#file.path);
      hash.update(bytes);
      crc = crc32(bytes, crc);
    }
    return { digest: `sha256:${hash.digest('hex')}`, crc32: crc };
  }

  #advance(offset: number, length: number): void {
    const isPages = offset % PAGE_SIZE === 0 && length % PAGE_SIZE === 0 && length > 0;
    if (!isPages || offset < this.#reached || offset + length > this.#options.memoryBytes) {
      throw new RangeError(`bytes ${offset}..${offset + length} of guest memory after ${this.#reached}`);
    }
    this.#reached = offset + length;
  }
}
