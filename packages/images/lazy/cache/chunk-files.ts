import { type FileHandle, open } from 'node:fs/promises';
import { isCode } from '../../errors/is-code.ts';
import type { Chunk } from './chunk.ts';

/** The open files of chunks, of which there are not more than a limit unless more are in use. */
export class ChunkFiles {
  readonly #limit: number;
  /** in the order of their last use */
  readonly #open = new Set<Chunk>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * The file of a chunk, which the caller has taken into use.
   * @param create makes the file if it is not there
   * @returns undefined when it is not there
   */
  async get(chunk: Chunk, create: boolean): Promise<FileHandle | undefined> {
    await chunk.evicting;
    if (chunk.file !== undefined) {
      this.#touch(chunk);
      return chunk.file;
    }
    chunk.opening ??= this.#openFile(chunk, create).finally(() => {
      chunk.opening = undefined;
    });
    const file = await chunk.opening;
    // Another caller may have begun to open it without making it.
    return file === undefined && create ? this.get(chunk, true) : file;
  }

  async close(chunk: Chunk): Promise<void> {
    this.#open.delete(chunk);
    const { file } = chunk;
    chunk.file = undefined;
    await file?.close();
  }

  async closeAll(): Promise<void> {
    for (const chunk of [...this.#open]) await this.close(chunk);
  }

  async #openFile(chunk: Chunk, create: boolean): Promise<FileHandle | undefined> {
    const file = await openOrMake(chunk.path, create);
    if (file === undefined) return undefined;
    const { ino } = await file.stat();
    // What was checked was in another file.
    if (ino !== chunk.inode) chunk.trusted.fill(0);
    chunk.inode = ino;
    chunk.file = file;
    this.#touch(chunk);
    await this.#closeSome();
    return file;
  }

  #touch(chunk: Chunk): void {
    this.#open.delete(chunk);
    this.#open.add(chunk);
  }

  async #closeSome(): Promise<void> {
    for (const chunk of this.#open) {
      if (this.#open.size <= this.#limit) return;
      if (chunk.uses === 0) await this.close(chunk);
    }
  }
}

async function openOrMake(path: string, create: boolean): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r+');
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    return create ? open(path, 'w+', 0o600) : undefined;
  }
}
