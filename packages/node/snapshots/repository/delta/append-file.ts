import { type FileHandle, open } from 'node:fs/promises';
import { ioError } from '@aenv/block/blob/io-error.ts';
import { writeAt } from '../bases/pages.ts';

const BUFFER = 2 ** 20;
const BUFFERS = 4;

/** A new file that is written behind: whoever appends waits only when all buffers are on their way. */
export class AppendFile {
  readonly path: string;
  readonly handle: FileHandle;
  readonly #free: Buffer[] = Array.from({ length: BUFFERS }, () => Buffer.allocUnsafe(BUFFER));
  #buffer: Buffer | undefined;
  #buffered = 0;
  #size = 0;
  readonly #writes = new Set<Promise<void>>();
  #failure: unknown;

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.handle = handle;
  }

  /** @throws AenvError `no_space`, `io_failed` */
  static async create(path: string): Promise<AppendFile> {
    try {
      return new AppendFile(path, await open(path, 'wx+', 0o600));
    } catch (error) {
      throw ioError(error, path);
    }
  }

  /** Bytes appended so far. */
  get size(): number {
    return this.#size;
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
      const part = bytes.subarray(at, at + BUFFER - this.#buffered);
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

  async #appendLater(bytes: Uint8Array): Promise<void> {
    await Promise.race(this.#writes);
    await this.append(bytes);
  }

  #flush(): void {
    const buffer = this.#buffer;
    if (buffer === undefined) return;
    const bytes = buffer.subarray(0, this.#buffered);
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
}
