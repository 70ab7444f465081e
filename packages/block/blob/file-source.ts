import { fstatSync, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from './contract.ts';
import { codeOf, ioError } from './io-error.ts';
import { checkRange } from './range.ts';

/** Bytes that one bit of the map of warm ranges stands for. */
const WARM_RANGE = 256 * 1024;

/** Bytes of the largest file that is taken: the map of warm ranges is as long as the file says. */
const MAX_FILE = 4 * 2 ** 40;

/**
 * A file that does not change. The first read of a range goes through the thread pool, as it may have to wait for the
 * disk; later ones are expected in the page cache and done at once, which saves a promise and two thread switches.
 */
class FileSource implements BlobSource {
  readonly size: number;
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #warm: Uint8Array;

  constructor(path: string, handle: FileHandle, size: number) {
    this.#path = path;
    this.#handle = handle;
    this.size = size;
    this.#warm = new Uint8Array(Math.ceil(size / WARM_RANGE / 8));
  }

  readSync(target: Uint8Array, offset: number): boolean {
    checkRange(this, target, offset);
    if (!this.#isWarm(offset, target.length)) return false;
    try {
      let done = 0;
      while (done < target.length) {
        const n = readSync(this.#handle.fd, target, done, target.length - done, offset + done);
        if (n === 0) throw this.#short();
        done += n;
      }
    } catch (error) {
      throw ioError(error, this.#path);
    }
    return true;
  }

  async read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void> {
    checkRange(this, target, offset);
    signal?.throwIfAborted();
    try {
      let done = 0;
      while (done < target.length) {
        const { bytesRead } = await this.#handle.read(target, done, target.length - done, offset + done);
        if (bytesRead === 0) throw this.#short();
        done += bytesRead;
      }
    } catch (error) {
      throw ioError(error, this.#path);
    }
    this.#setWarm(offset, target.length);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  #isWarm(offset: number, length: number): boolean {
    const last = Math.floor((offset + length - 1) / WARM_RANGE);
    for (let i = Math.floor(offset / WARM_RANGE); i <= last; i++) {
      if (((this.#warm[i >>> 3] as number) & (1 << (i & 7))) === 0) return false;
    }
    return true;
  }

  /** Readahead brings the rest of a range that was read in part. */
  #setWarm(offset: number, length: number): void {
    const last = Math.floor((offset + length - 1) / WARM_RANGE);
    for (let i = Math.floor(offset / WARM_RANGE); i <= last; i++) {
      this.#warm[i >>> 3] = (this.#warm[i >>> 3] as number) | (1 << (i & 7));
    }
  }

  #short(): AenvError {
    return new AenvError('layer_corrupt', `${this.#path} has become shorter than ${this.size} bytes`);
  }
}

/** @throws AenvError `layer_corrupt` if there is no such file, `io_failed` */
export async function openFile(path: string): Promise<BlobSource> {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      throw new AenvError('layer_corrupt', `the layer's file ${path} does not exist`, { cause: error });
    }
    throw ioError(error, path);
  }
  const stat = fstatSync(handle.fd);
  if (!stat.isFile() || stat.size > MAX_FILE) {
    await handle.close();
    throw new AenvError('layer_corrupt', `${path} is not a file, or larger than any layer can be`);
  }
  return new FileSource(path, handle, stat.size);
}
