import type { FileHandle } from 'node:fs/promises';
import { BLOCK_SIZE } from '../ext4/model/geometry.ts';
import type { BlockReader, BlockSink } from '../ext4/sink.ts';

/** A disk as one sparse file. */
export class RawDisk implements BlockSink, BlockReader {
  readonly #file: FileHandle;

  /** @param file open for reading and writing, with the size of the disk; stays the caller's */
  constructor(file: FileHandle) {
    this.#file = file;
  }

  async write(block: number, data: Uint8Array): Promise<void> {
    for (let done = 0; done < data.length; ) {
      const { bytesWritten } = await this.#file.write(data, done, data.length - done, block * BLOCK_SIZE + done);
      done += bytesWritten;
    }
  }

  async read(target: Uint8Array, offset: number): Promise<void> {
    for (let done = 0; done < target.length; ) {
      const { bytesRead } = await this.#file.read(target, done, target.length - done, offset + done);
      if (bytesRead === 0) throw new Error('the disk ends early');
      done += bytesRead;
    }
  }
}
