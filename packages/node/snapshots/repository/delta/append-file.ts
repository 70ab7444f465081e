import { writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setImmediate as breathe } from 'node:timers/promises';
import { ioError } from '@aenv/block/blob/io-error.ts';
import { writeAt } from '../bases/pages.ts';

const BUFFER = 256 * 1024;
const BUFFERS = 8;
/** Unit of what is made ahead. */
const ZEROS = Buffer.alloc(2 ** 20);
const PAGE = 4096;

/**
 * A new file that is written behind: whoever appends waits only when all buffers are on their way. The memory that it goes
 * through can be there before: pages that the kernel has to find first cost more than to copy into them, several times as
 * much where this host is a guest itself. What goes to such pages is only copied, so it is written at once: to hand it to a
 * thread takes longer.
 */
export class AppendFile {
  readonly path: string;
  readonly handle: FileHandle;
  readonly #free: Buffer[];
  #buffer: Buffer | undefined;
  #buffered = 0;
  #size = 0;
  /** bytes that were written ahead */
  #ahead = 0;
  readonly #writes = new Set<Promise<void>>();
  #failure: unknown;

  private constructor(path: string, handle: FileHandle, buffers: Buffer[]) {
    this.path = path;
    this.handle = handle;
    this.#free = buffers;
  }

  /** @throws AenvError `no_space`, `io_failed` */
  static async create(path: string): Promise<AppendFile> {
    const buffers = await touchedBuffers();
    try {
      return new AppendFile(path, await open(path, 'wx+', 0o600), buffers);
    } catch (error) {
      throw ioError(error, path);
    }
  }

  /** Bytes appended so far. */
  get size(): number {
    return this.#size;
  }

  /**
   * Has the file hold so many bytes in memory already, zeros that are then written over, and cut off by `written` where
   * they were too many.
   * @throws AenvError `no_space`, `io_failed`
   */
  async makeAhead(bytes: number): Promise<void> {
    this.#ahead = Math.max(this.#ahead, this.#size);
    while (this.#ahead < bytes) {
      const piece = ZEROS.subarray(0, Math.min(ZEROS.length, bytes - this.#ahead));
      await writeAt(this.handle, piece, this.#ahead, this.path);
      this.#ahead += piece.length;
    }
  }

  /**
   * One call at a time. `bytes` are read until it returns, or its promise resolves.
   * @throws AenvError `no_space`, `io_failed`, perhaps of an earlier call
   */
  append(bytes: Uint8Array): undefined | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    for (let at = 0; at < bytes.length; ) {
      this.#buffer ??= this.#free.pop();
      if (this.#buffer === undefined) return this.#appendLater(bytes.subarray(at));
      const room = BUFFER - this.#buffered;
      const part = at === 0 && bytes.length <= room ? bytes : bytes.subarray(at, at + room);
      this.#buffer.set(part, this.#buffered);
      this.#buffered += part.length;
      this.#size += part.length;
      at += part.length;
      if (this.#buffered === BUFFER) this.#flush();
    }
    return undefined;
  }

  /** Resolves when everything is in the file. @throws AenvError `no_space`, `io_failed` */
  async written(): Promise<void> {
    this.#flush();
    await Promise.all(this.#writes);
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#ahead > this.#size) await this.#cut();
  }

  /** Data, and what is needed to read it again, is on the disk. @throws AenvError `io_failed`, `no_space` */
  async sync(): Promise<void> {
    try {
      await this.handle.datasync();
    } catch (error) {
      throw ioError(error, this.path);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#writes);
    await this.handle.close();
  }

  async #cut(): Promise<void> {
    try {
      await this.handle.truncate(this.#size);
      this.#ahead = this.#size;
    } catch (error) {
      throw ioError(error, this.path);
    }
  }

  async #appendLater(bytes: Uint8Array): Promise<void> {
    await Promise.race(this.#writes);
    await this.append(bytes);
  }

  #flush(): void {
    const buffer = this.#buffer;
    if (buffer === undefined) return;
    const bytes = buffer.subarray(0, this.#buffered);
    if (this.#size <= this.#ahead) {
      this.#writeNow(bytes, this.#size - bytes.length);
      this.#buffered = 0;
      return;
    }
    const write = writeAt(this.handle, bytes, this.#size - bytes.length, this.path)
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#free.push(buffer);
        this.#writes.delete(write);
      });
    this.#writes.add(write);
    this.#buffer = undefined;
    this.#buffered = 0;
  }

  #writeNow(bytes: Uint8Array, position: number): void {
    try {
      for (let done = 0; done < bytes.length; )
        done += writeSync(this.handle.fd, bytes, done, bytes.length - done, position + done);
    } catch (error) {
      this.#failure ??= ioError(error, this.path);
    }
  }
}

/** Buffers of which every page is there. Others get their turn in between. */
async function touchedBuffers(): Promise<Buffer[]> {
  const buffers: Buffer[] = [];
  while (buffers.length < BUFFERS) {
    const buffer = Buffer.allocUnsafeSlow(BUFFER);
    for (let at = 0; at < BUFFER; at += PAGE) buffer[at] = 0;
    buffers.push(buffer);
    await breathe();
  }
  return buffers;
}
