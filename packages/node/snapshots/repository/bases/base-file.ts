import { chmod, constants, copyFile, type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ioError } from '@aenv/block/blob/io-error.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { writeAt, writeSparse } from './pages.ts';

/** Name of a base's file while it is made. */
export const TEMPORARY = '.part';

/**
 * The file of a memory base in the making: as large as the memory, holes where it is zero. It gets its name, for reading
 * only, when it is on the disk; from then on it never changes.
 */
export class BaseFile implements AsyncDisposable {
  readonly #temporary: string;
  readonly #file: FileHandle;
  /** whether what is not written reads as another base, of which this began as a copy */
  readonly isCopy: boolean;
  #done = false;

  private constructor(temporary: string, file: FileHandle, isCopy: boolean) {
    this.#temporary = temporary;
    this.#file = file;
    this.isCopy = isCopy;
  }

  /**
   * @param name unique: of the temporary file, in `folder`
   * @param parent begins as a copy of this file where the file system copies by reference, else empty
   * @throws AenvError `no_space`, `io_failed`
   */
  static async create(folder: string, name: string, sizeBytes: number, parent?: string): Promise<BaseFile> {
    const temporary = `${folder}/${name}${TEMPORARY}`;
    try {
      const isCopy = parent !== undefined && (await copiedByReference(parent, temporary));
      const file = await open(temporary, isCopy ? 'r+' : 'w+', 0o600);
      await file.truncate(sizeBytes);
      return new BaseFile(temporary, file, isCopy);
    } catch (error) {
      await rm(temporary, { force: true });
      throw ioError(error, temporary);
    }
  }

  async write(bytes: Uint8Array, offset: number): Promise<void> {
    const write = this.isCopy ? writeAt : writeSparse;
    await write(this.#file, bytes, offset, this.#temporary);
  }

  /** What was written is on the disk, so that little is left to be done at once when it is finished. */
  async settle(): Promise<void> {
    try {
      await this.#file.datasync();
    } catch (error) {
      throw ioError(error, this.#temporary);
    }
  }

  /** Nothing has the name yet: a file that is mapped is never replaced. */
  async finish(path: string, beforeRename: () => void | Promise<void>): Promise<void> {
    try {
      await this.#file.chmod(0o444);
      await this.#file.sync();
      await beforeRename();
      await rename(this.#temporary, path);
      this.#done = true;
      await syncFolder(dirname(path));
    } catch (error) {
      throw ioError(error, path);
    }
  }

  /** Removes a file that was not finished. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
    if (!this.#done) await rm(this.#temporary, { force: true });
  }
}

async function copiedByReference(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
    await chmod(to, 0o600);
    return true;
  } catch {
    await rm(to, { force: true });
    return false;
  }
}
