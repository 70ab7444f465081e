import type { MemorySink } from '@aenv/vmm/contract/micro-vm.ts';
import { CHUNK_BYTES } from './memory-base.ts';

export interface ChunkAssemblerOptions {
  /** A chunk as it was before, in a buffer to be changed. */
  before(index: number): Promise<Buffer>;
  /** Takes a chunk with its changes. */
  changed(index: number, chunk: Buffer): Promise<void>;
}

/** Takes changed pages in ascending order, and gives the chunks that they are in. */
export class ChunkAssembler implements MemorySink {
  readonly #options: ChunkAssemblerOptions;
  #index = -1;
  #chunk: Buffer = Buffer.alloc(0);

  constructor(options: ChunkAssemblerOptions) {
    this.#options = options;
  }

  async data(offset: number, bytes: Uint8Array): Promise<void> {
    await this.#eachChunk(offset, bytes.length, (chunk, at, from, length) => {
      chunk.set(bytes.subarray(from, from + length), at);
    });
  }

  async zero(offset: number, length: number): Promise<void> {
    await this.#eachChunk(offset, length, (chunk, at, _from, part) => {
      chunk.fill(0, at, at + part);
    });
  }

  /** Gives the last chunk. */
  async finish(): Promise<void> {
    if (this.#index >= 0) await this.#options.changed(this.#index, this.#chunk);
    this.#index = -1;
  }

  async #eachChunk(
    offset: number,
    length: number,
    change: (chunk: Buffer, at: number, from: number, length: number) => void,
  ): Promise<void> {
    for (let done = 0; done < length; ) {
      const index = Math.floor((offset + done) / CHUNK_BYTES);
      const at = offset + done - index * CHUNK_BYTES;
      const part = Math.min(length - done, CHUNK_BYTES - at);
      if (index !== this.#index) await this.#turnTo(index);
      change(this.#chunk, at, done, part);
      done += part;
    }
  }

  async #turnTo(index: number): Promise<void> {
    if (index < this.#index) throw new RangeError('changed pages must come in ascending order');
    await this.finish();
    this.#chunk = await this.#options.before(index);
    this.#index = index;
  }
}
