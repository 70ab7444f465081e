import { fstatSync, ftruncateSync, readSync, renameSync, writeSync, writevSync } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { writeFully } from '@aenv/platform/files/write-fully.ts';
import { codeOf, ioError } from '../../blob/io-error.ts';
import type { LayerFiles, RandomFile } from './contract.ts';

/** The host's file system. */
export const hostFiles: LayerFiles = {
  async makeFolder(path) {
    try {
      await mkdir(path, { recursive: true });
    } catch (error) {
      throw ioError(error, path);
    }
  },
  create: async (path) => new HostFile(path, await openOrThrow(path, 'wx+')),
  async open(path) {
    try {
      return new HostFile(path, await open(path, 'r+'));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw ioError(error, path);
    }
  },
  rename,
  renameSync,
  remove: (path) => rm(path, { force: true }),
  syncFolder,
};

/** Parts of one writev(2): IOV_MAX. */
const MAX_PARTS = 1024;

class HostFile implements RandomFile {
  readonly #path: string;
  readonly #handle: FileHandle;

  constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  size(): number {
    return fstatSync(this.#handle.fd).size;
  }

  readSync(target: Uint8Array, position: number): void {
    let done = 0;
    while (done < target.length) {
      const n = this.#try(() => readSync(this.#handle.fd, target, done, target.length - done, position + done));
      if (n === 0) throw new AenvError('layer_corrupt', `${this.#path} ends before byte ${position + target.length}`);
      done += n;
    }
  }

  writeSync(parts: readonly Uint8Array[], position: number): void {
    for (let i = 0; i < parts.length; i += MAX_PARTS) {
      const some = i === 0 && parts.length <= MAX_PARTS ? parts : parts.slice(i, i + MAX_PARTS);
      position += this.#writeSome(some, position);
    }
  }

  async write(data: Uint8Array, position: number): Promise<void> {
    try {
      await writeFully(this.#handle, data, position);
    } catch (error) {
      throw ioError(error, this.#path);
    }
  }

  truncateSync(size: number): void {
    this.#try(() => ftruncateSync(this.#handle.fd, size));
  }

  async sync(): Promise<void> {
    try {
      await this.#handle.datasync();
    } catch (error) {
      throw ioError(error, this.#path);
    }
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  #writeSome(parts: readonly Uint8Array[], position: number): number {
    let total = 0;
    for (const part of parts) total += part.length;
    const [first] = parts;
    if (first === undefined) return 0;
    let done =
      parts.length === 1
        ? this.#try(() => writeSync(this.#handle.fd, first, 0, first.length, position))
        : this.#try(() => writevSync(this.#handle.fd, parts, position));
    // A short write is rare (a full disk, mostly): the rest goes byte range by byte range.
    let skip = done;
    for (const part of done < total ? parts : []) {
      let at = Math.min(skip, part.length);
      skip -= at;
      while (at < part.length) {
        const n = this.#try(() => writeSync(this.#handle.fd, part, at, part.length - at, position + done));
        at += n;
        done += n;
      }
    }
    return total;
  }

  #try<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw ioError(error, this.#path);
    }
  }
}

async function openOrThrow(path: string, flags: string): Promise<FileHandle> {
  try {
    return await open(path, flags, 0o600);
  } catch (error) {
    throw ioError(error, path);
  }
}
