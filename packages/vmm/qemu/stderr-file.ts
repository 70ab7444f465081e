import { constants, type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { printableTail } from '../console/printable-tail.ts';

/** Above this size the file is emptied; a guest can make its VMM complain over and over. */
const MAX_STDERR = 256 * 1024;

/**
 * What a QEMU prints, in its run folder. The VMM's user owns that folder, so a VMM that was taken over can put anything
 * in the file's place: it is opened without following links and without waiting for the other end of a FIFO.
 */
export class StderrFile {
  readonly #path: string;

  constructor(runDir: string) {
    this.#path = join(runDir, 'stderr.log');
  }

  /** For the process to write to; append mode, so that emptying it takes effect. */
  create(): Promise<FileHandle> {
    return open(this.#path, 'ax', 0o600);
  }

  /** Empty when there is nothing that can be read: it is for messages, and must not be a fault of its own. */
  async lastLines(count: number): Promise<string> {
    try {
      await using file = await this.#open(constants.O_RDONLY);
      if (file === undefined) return '';
      const { size } = await file.stat();
      const buffer = Buffer.alloc(Math.min(size, 16 * 1024));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, size - buffer.length);
      return printableTail(buffer.subarray(0, bytesRead), count);
    } catch {
      return '';
    }
  }

  /** Empties the file when it has grown over its bound. */
  async trim(): Promise<void> {
    await using file = await this.#open(constants.O_RDWR);
    if (file !== undefined && (await file.stat()).size > MAX_STDERR) await file.truncate(0);
  }

  async #open(mode: number): Promise<FileHandle | undefined> {
    let file: FileHandle;
    try {
      file = await open(this.#path, mode | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
    if ((await file.stat()).isFile()) return file;
    await file.close();
    return undefined;
  }
}
