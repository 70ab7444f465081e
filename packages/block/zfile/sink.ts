import type { BlobSink } from '../blob/sink.ts';
import { type BlockEncoder, encoderOf } from './codec.ts';
import { rawCrc32c } from './crc32c.ts';
import { BLOCK_SEED, type Compression, CRC_SIZE, encodeZFileHeader, ZFILE_HEADER_SIZE } from './header.ts';
import { MAX_BLOCKS } from './jump-table.ts';

export interface ZFileForm {
  readonly compression: Compression;
  /** a power of two, 4096 to 65,536 */
  readonly blockSize: number;
}

/** Packs what is appended into a ZFile with checksums. Only whole files: what was packed cannot be patched. */
export class ZFileSink implements BlobSink {
  readonly #out: BlobSink;
  readonly #form: ZFileForm;
  readonly #encode: BlockEncoder;
  readonly #start: number;
  readonly #block: Buffer;
  #filled = 0;
  #size = 0;
  #lengths = new Uint32Array(1024);
  #blocks = 0;

  private constructor(out: BlobSink, form: ZFileForm) {
    this.#out = out;
    this.#form = form;
    this.#encode = encoderOf(form.compression);
    this.#start = out.size;
    this.#block = Buffer.allocUnsafe(form.blockSize);
  }

  static async begin(out: BlobSink, form: ZFileForm): Promise<ZFileSink> {
    const sink = new ZFileSink(out, form);
    await out.append(Buffer.alloc(ZFILE_HEADER_SIZE));
    return sink;
  }

  get size(): number {
    return this.#size;
  }

  async append(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + this.#block.length - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      this.#size += part.length;
      at += part.length;
      if (this.#filled === this.#block.length) await this.#flush();
    }
  }

  async patch(): Promise<void> {
    throw new RangeError('a packed file cannot be patched');
  }

  /** Appends jump table and trailer, and puts the final values into the header. */
  async finish(): Promise<void> {
    if (this.#filled > 0) await this.#flush();
    const table = Buffer.alloc(this.#blocks * 4);
    for (let i = 0; i < this.#blocks; i++) table.writeUInt32LE(this.#lengths[i] as number, i * 4);
    const fields = {
      tableOffset: this.#out.size - this.#start,
      blocks: this.#blocks,
      originalSize: this.#size,
      tableCrc: rawCrc32c(table),
      verify: true,
      ...this.#form,
    };
    await this.#out.append(table);
    await this.#out.append(encodeZFileHeader({ ...fields, isTrailer: true }));
    await this.#out.patch(encodeZFileHeader({ ...fields, isTrailer: false }), this.#start);
  }

  async #flush(): Promise<void> {
    if (this.#blocks === MAX_BLOCKS) throw new RangeError(`a ZFile has at most ${MAX_BLOCKS} blocks`);
    const stored = this.#encode(this.#block.subarray(0, this.#filled));
    const block = Buffer.allocUnsafe(stored.length + CRC_SIZE);
    block.set(stored);
    block.writeUInt32LE(rawCrc32c(stored, BLOCK_SEED), stored.length);
    if (this.#blocks === this.#lengths.length) {
      const larger = new Uint32Array(this.#blocks * 2);
      larger.set(this.#lengths);
      this.#lengths = larger;
    }
    this.#lengths[this.#blocks++] = block.length;
    this.#filled = 0;
    await this.#out.append(block);
  }
}
