import { BLOCK_SIZE } from '../model/geometry.ts';
import type { BlockReader, BlockSink } from '../sink.ts';
import { invalid } from './geometry.ts';

/** Blocks that are kept though nothing in them was changed. */
const MAX_CLEAN = 2048;
/** Blocks that may be changed: what is done here needs some dozens, and a few for each folder of /usr/local. */
const MAX_CHANGED = 65_536;

/** Blocks of a disk, and what was changed in them since. */
export class BlockEdits {
  readonly #reader: BlockReader;
  readonly #blockCount: number;
  readonly #signal: AbortSignal | undefined;
  readonly #clean = new Map<number, Buffer>();
  readonly #changed = new Map<number, Buffer>();

  constructor(reader: BlockReader, blockCount: number, signal: AbortSignal | undefined) {
    this.#reader = reader;
    this.#blockCount = blockCount;
    this.#signal = signal;
  }

  /** To be read only. @throws AenvError `image_invalid` for a block that is not on the disk */
  async read(block: number): Promise<Buffer> {
    const known = this.#changed.get(block) ?? this.#clean.get(block);
    if (known !== undefined) return known;
    if (!Number.isSafeInteger(block) || block < 0 || block >= this.#blockCount) {
      throw invalid('its ext4 points outside of the disk');
    }
    const data = Buffer.alloc(BLOCK_SIZE);
    await this.#reader.read(data, block * BLOCK_SIZE, this.#signal);
    if (this.#clean.size >= MAX_CLEAN) for (const oldest of this.#clean.keys()) this.#clean.delete(oldest);
    this.#clean.set(block, data);
    return data;
  }

  /** To be changed in place. */
  async edit(block: number): Promise<Buffer> {
    const data = await this.read(block);
    this.#change(block, data);
    return data;
  }

  /** Replaces a block as a whole. */
  replace(block: number, data: Buffer): void {
    this.#change(block, data);
  }

  /** Writes all that was changed, in order. */
  async writeTo(sink: BlockSink): Promise<void> {
    for (const [block, data] of [...this.#changed].sort(([a], [b]) => a - b)) await sink.write(block, data);
  }

  #change(block: number, data: Buffer): void {
    this.#clean.delete(block);
    this.#changed.set(block, data);
    if (this.#changed.size > MAX_CHANGED) throw invalid('it has too many folders in /usr/local');
  }
}
