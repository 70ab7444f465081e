import { type FileHandle, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, ioError } from '@aenv/block/blob/io-error.ts';
import { SyncRounds } from '@aenv/block/layers/writable/sync-rounds.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { SingleFlight } from '../locks/single-flight.ts';
import type { ByteRange, ChunkStore, StoredChunk } from './contract.ts';

const TEMPORARY = '.part';
const KEY = /^[a-z0-9][a-z0-9.-]*$/;

/**
 * A file each, in one folder. It gets its name when it is on the disk; syncs of the folder are shared by those who put at
 * the same time.
 */
export class LocalFolder implements ChunkStore {
  readonly #folder: string;
  readonly #puts = new SingleFlight<void>();
  readonly #names: SyncRounds;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#names = new SyncRounds(() => syncFolder(folder));
  }

  /** Removes what an earlier process was writing, and makes sure of what it had just named. */
  static async open(folder: string): Promise<LocalFolder> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for await (const { name } of await opendir(folder)) {
      if (name.endsWith(TEMPORARY)) await rm(join(folder, name));
    }
    await syncFolder(folder);
    return new LocalFolder(folder);
  }

  /** A folder that somebody else writes to: it is read only, and left as it is. */
  static reading(folder: string): LocalFolder {
    return new LocalFolder(folder);
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    return this.#puts.run(key, async () => {
      if (await this.#exists(key)) return;
      const path = this.#path(key);
      const temporary = `${path}${TEMPORARY}`;
      try {
        await writeSynced(temporary, bytes);
        await rename(temporary, path);
        this.#names.wrote();
        await this.#names.sync();
      } catch (error) {
        await rm(temporary, { force: true });
        throw ioError(error, path);
      }
    });
  }

  async get(key: string, range?: ByteRange): Promise<Buffer | undefined> {
    const path = this.#path(key);
    try {
      await using file = await open(path);
      if (range === undefined) return await file.readFile();
      const bytes = Buffer.alloc(range.length);
      return bytes.subarray(0, await readUpTo(file, bytes, range.offset));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw ioError(error, path);
    }
  }

  async has(key: string): Promise<boolean> {
    // One that is being put has its name a moment before that is durable.
    await this.#puts.idle(key);
    return this.#exists(key);
  }

  async *list(): AsyncGenerator<StoredChunk> {
    for await (const { name } of await opendir(this.#folder)) {
      if (name.endsWith(TEMPORARY)) continue;
      const found = await stat(join(this.#folder, name)).catch(() => undefined);
      if (found !== undefined) yield { key: name, sizeBytes: found.size };
    }
  }

  async delete(key: string): Promise<void> {
    await rm(this.#path(key), { force: true });
  }

  async #exists(key: string): Promise<boolean> {
    return (await stat(this.#path(key)).catch(() => undefined)) !== undefined;
  }

  #path(key: string): string {
    if (!KEY.test(key) || key.endsWith(TEMPORARY)) throw new RangeError(`not a key: ${key}`);
    return join(this.#folder, key);
  }
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  await using file = await open(path, 'w', 0o600);
  await file.writeFile(bytes);
  await file.datasync();
}

async function readUpTo(file: FileHandle, target: Buffer, offset: number): Promise<number> {
  let done = 0;
  while (done < target.length) {
    const { bytesRead } = await file.read(target, done, target.length - done, offset + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return done;
}
