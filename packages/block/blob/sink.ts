import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { writeFully } from '@aenv/platform/files/write-fully.ts';
import { ioError } from './io-error.ts';

/** Where the bytes of a blob go, in order; what stands at the beginning may be corrected at the end. */
export interface BlobSink {
  /** Bytes appended so far. */
  readonly size: number;
  append(bytes: Uint8Array): Promise<void>;
  /** Replaces bytes that were appended before. */
  patch(bytes: Uint8Array, offset: number): Promise<void>;
}

/** What became of a blob that was written to a file. */
export interface WrittenBlob {
  readonly path: string;
  readonly sizeBytes: number;
  /** `sha256:` and 64 hex digits, of the file */
  readonly digest: string;
}

/** Bytes that are gathered before they are written. */
const BUFFER = 2 ** 20;

/**
 * A file that gets its name only when all of it is on the disk. Until then it has a name of its own in the same folder,
 * and `abort` removes it.
 */
export class FileSink implements BlobSink {
  readonly #path: string;
  readonly #temporary: string;
  readonly #file: FileHandle;
  readonly #buffer = Buffer.allocUnsafe(BUFFER);
  #buffered = 0;
  #written = 0;

  private constructor(path: string, temporary: string, file: FileHandle) {
    this.#path = path;
    this.#temporary = temporary;
    this.#file = file;
  }

  /** @throws AenvError `no_space`, `io_failed` */
  static async create(path: string, mode = 0o600): Promise<FileSink> {
    const temporary = `${path}.part`;
    try {
      const file = await open(
        temporary,
        constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
        mode,
      );
      return new FileSink(path, temporary, file);
    } catch (error) {
      throw ioError(error, temporary);
    }
  }

  get size(): number {
    return this.#written + this.#buffered;
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#buffered + bytes.length > BUFFER) await this.#drain();
    if (bytes.length >= BUFFER) {
      await this.#write(bytes, this.#written);
      this.#written += bytes.length;
      return;
    }
    this.#buffer.set(bytes, this.#buffered);
    this.#buffered += bytes.length;
  }

  async patch(bytes: Uint8Array, offset: number): Promise<void> {
    await this.#drain();
    if (offset < 0 || offset + bytes.length > this.#written) throw new RangeError('patch outside of what was written');
    await this.#write(bytes, offset);
  }

  /** Syncs the file, hashes it and gives it its name. */
  async finish(): Promise<WrittenBlob> {
    try {
      await this.#drain();
      const digest = await this.#digest();
      await this.#file.sync();
      await this.#file.close();
      await rename(this.#temporary, this.#path);
      await syncFolder(dirname(this.#path));
      return { path: this.#path, sizeBytes: this.#written, digest };
    } catch (error) {
      throw ioError(error, this.#temporary);
    }
  }

  /** Removes what was written. */
  async abort(): Promise<void> {
    await this.#file.close();
    await rm(this.#temporary, { force: true });
  }

  async #drain(): Promise<void> {
    if (this.#buffered === 0) return;
    await this.#write(this.#buffer.subarray(0, this.#buffered), this.#written);
    this.#written += this.#buffered;
    this.#buffered = 0;
  }

  async #write(bytes: Uint8Array, position: number): Promise<void> {
    try {
      await writeFully(this.#file, bytes, position);
    } catch (error) {
      throw ioError(error, this.#temporary);
    }
  }

  /** The header may have been corrected, so the hash is of what is in the file now; it comes from the page cache. */
  async #digest(): Promise<string> {
    const hash = createHash('sha256');
    for (let at = 0; at < this.#written; ) {
      const { bytesRead } = await this.#file.read(this.#buffer, 0, BUFFER, at);
      if (bytesRead === 0) break;
      hash.update(this.#buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
    return `sha256:${hash.digest('hex')}`;
  }
}
