import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from '../blob/contract.ts';
import { checkRange } from '../blob/range.ts';
import { readAll } from '../blob/read-all.ts';
import { type BlockDecoder, decoderOf } from './codec.ts';
import { rawCrc32c } from './crc32c.ts';
import { BLOCK_SEED, CRC_SIZE, decodeZFileHeader, ZFILE_HEADER_SIZE, type ZFileHeader } from './header.ts';
import { type JumpTable, parseJumpTable, tableSize } from './jump-table.ts';

/** Bytes of stored blocks that are read in one go. */
const CHUNK = 2 ** 20;
/** Bytes of unpacked blocks that are kept: those that were read in part are likely to be wanted again. */
const CACHE_SIZE = 512 * 1024;

/**
 * The unpacked bytes of a ZFile. Only the blocks that a read needs are read and unpacked.
 */
class ZFileSource implements BlobSource {
  readonly size: number;
  readonly #packed: BlobSource;
  readonly #header: ZFileHeader;
  readonly #table: JumpTable;
  readonly #decode: BlockDecoder;
  /** in the order of their last use */
  readonly #cache = new Map<number, Uint8Array>();

  constructor(packed: BlobSource, header: ZFileHeader, table: JumpTable) {
    this.size = header.originalSize;
    this.#packed = packed;
    this.#header = header;
    this.#table = table;
    this.#decode = decoderOf(header.compression);
  }

  readSync(target: Uint8Array, offset: number): boolean {
    checkRange(this, target, offset);
    for (const chunk of this.#chunks(target, offset)) {
      const stored = Buffer.allocUnsafe(chunk.length);
      if (!this.#packed.readSync(stored, chunk.start)) return false;
      try {
        this.#unpack(stored, chunk, target, offset);
      } catch (error) {
        // What is fetched anew may be sound.
        if (this.#packed.distrust === undefined) throw error;
        return false;
      }
    }
    return true;
  }

  async read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void> {
    checkRange(this, target, offset);
    for (const chunk of this.#chunks(target, offset)) {
      const stored = Buffer.allocUnsafe(chunk.length);
      if (!this.#packed.readSync(stored, chunk.start)) await this.#packed.read(stored, chunk.start, signal);
      try {
        this.#unpack(stored, chunk, target, offset);
      } catch (error) {
        if (this.#packed.distrust === undefined) throw error;
        await this.#packed.distrust(chunk.start, chunk.length);
        await this.#packed.read(stored, chunk.start, signal);
        await this.#unpackOrDistrust(stored, chunk, target, offset);
      }
    }
  }

  async distrust(): Promise<void> {
    this.#cache.clear();
    await this.#packed.distrust?.(0, this.#packed.size);
  }

  close(): Promise<void> {
    return this.#packed.close();
  }

  /** What is damaged once more is not kept either. */
  async #unpackOrDistrust(stored: Buffer, chunk: Chunk, target: Uint8Array, offset: number): Promise<void> {
    try {
      this.#unpack(stored, chunk, target, offset);
    } catch (error) {
      await this.#packed.distrust?.(chunk.start, chunk.length);
      throw error;
    }
  }

  /** Runs of blocks that the range needs and that are not in the cache; those that are get copied at once. */
  *#chunks(target: Uint8Array, offset: number): Generator<Chunk> {
    const end = offset + target.length;
    const { blockSize } = this.#header;
    let chunk: Chunk | undefined;
    for (let block = Math.floor(offset / blockSize); block * blockSize < end; block++) {
      const cached = this.#cache.get(block);
      if (cached !== undefined) {
        this.#remember(block, cached);
        copyPart(cached, block * blockSize, target, offset);
        if (chunk !== undefined) yield chunk;
        chunk = undefined;
        continue;
      }
      const length = this.#table.lengthOf(block);
      if (chunk !== undefined && chunk.length + length > CHUNK) {
        yield chunk;
        chunk = undefined;
      }
      chunk ??= { start: this.#table.startOf(block), length: 0, first: block, last: block };
      chunk.length += length;
      chunk.last = block;
    }
    if (chunk !== undefined) yield chunk;
  }

  #unpack(stored: Buffer, chunk: Chunk, target: Uint8Array, offset: number): void {
    const { blockSize, verify, originalSize } = this.#header;
    let at = 0;
    for (let block = chunk.first; block <= chunk.last; block++) {
      const end = at + this.#table.lengthOf(block) - (verify ? CRC_SIZE : 0);
      const bytes = stored.subarray(at, end);
      if (verify && rawCrc32c(bytes, BLOCK_SEED) !== stored.readUInt32LE(end)) {
        throw corrupt(`the checksum of block ${block} does not match`);
      }
      at = end + (verify ? CRC_SIZE : 0);
      const start = block * blockSize;
      const length = Math.min(blockSize, originalSize - start);
      const isWhole = start >= offset && start + length <= offset + target.length;
      const unpacked = isWhole ? target.subarray(start - offset, start - offset + length) : new Uint8Array(length);
      if (!this.#decode(bytes, unpacked)) throw corrupt(`block ${block} does not unpack to ${length} bytes`);
      if (isWhole) continue;
      copyPart(unpacked, start, target, offset);
      this.#remember(block, unpacked);
    }
  }

  #remember(block: number, bytes: Uint8Array): void {
    this.#cache.delete(block);
    this.#cache.set(block, bytes);
    if (this.#cache.size * this.#header.blockSize <= CACHE_SIZE) return;
    for (const oldest of this.#cache.keys()) {
      this.#cache.delete(oldest);
      break;
    }
  }
}

interface Chunk {
  /** in the file */
  readonly start: number;
  length: number;
  readonly first: number;
  last: number;
}

/** Copies what a block at `start` and the wanted range have in common. */
function copyPart(block: Uint8Array, start: number, target: Uint8Array, offset: number): void {
  const from = Math.max(0, offset - start);
  const to = Math.min(block.length, offset + target.length - start);
  target.set(block.subarray(from, to), start + from - offset);
}

/**
 * Opens a ZFile. The unpacked blob takes over the packed one; after an error that is still the caller's.
 * @throws AenvError `layer_corrupt`, `layer_unavailable`
 */
export async function openZFile(packed: BlobSource, signal?: AbortSignal): Promise<BlobSource> {
  if (packed.size < 2 * ZFILE_HEADER_SIZE) throw corrupt('it is shorter than header and trailer');
  const first = decodeZFileHeader(await readAll(packed, 0, ZFILE_HEADER_SIZE, signal));
  if (first.isTrailer) throw corrupt('it begins with a trailer');
  const last = decodeZFileHeader(await readAll(packed, packed.size - ZFILE_HEADER_SIZE, ZFILE_HEADER_SIZE, signal));
  if (!last.isTrailer) throw corrupt('it ends with a header');
  // A file that was written as a stream has its final values in the trailer only.
  const header = first.isFinal ? first : last;
  const bytes = await readAll(packed, header.tableOffset, tableSize(header, packed.size), signal);
  if (header.hasDigests && rawCrc32c(bytes) !== header.tableCrc) {
    throw corrupt('the checksum of its jump table does not match');
  }
  return new ZFileSource(packed, header, parseJumpTable(bytes, header));
}

function corrupt(problem: string): AenvError {
  return new AenvError('layer_corrupt', `the ZFile cannot be read: ${problem}`);
}
