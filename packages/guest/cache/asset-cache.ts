import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { syncFolder, writeDurable } from '@aenv/platform/files/durable.ts';
import { identify } from '@aenv/platform/process/identity.ts';
import type { GuestFile } from '../contract.ts';

/** What one artefact is and how it comes to be. */
export interface Recipe {
  /** `kernel`, `tools`, …: the first part of the entry's name */
  readonly kind: string;
  /** name of the file in the entry */
  readonly file: string;
  /** sha256 of all inputs */
  readonly digest: string;
  readonly mode?: number;
  /** Writes the artefact to `target`, which does not exist yet; `scratch` is an empty folder that is removed after. */
  build(target: string, scratch: string): Promise<void>;
}

/** Written beside the artefact: what its bytes were when it was complete. */
interface Seal {
  readonly size: number;
  readonly sha256: string;
  /** inode and mtime in ns at sealing: as long as they are the same, the bytes need not be read again */
  readonly ino: string;
  readonly mtime: string;
}

const SEAL = 'seal.json';

/**
 * Artefacts by the digest of their inputs: `<dir>/<kind>-<digest>/<file>`. An entry is made in a temporary folder and
 * renamed into place, so it is complete or absent, also when several processes build it at once. An entry whose bytes
 * are not those that were sealed is never used, but built again.
 */
export class AssetCache {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** The artefact, built when it is not there or broken. */
  async get(recipe: Recipe): Promise<GuestFile> {
    const entry = join(this.#dir, `${recipe.kind}-${recipe.digest}`);
    const found: GuestFile = { path: join(entry, recipe.file), digest: recipe.digest };
    if (await isSealed(entry, recipe.file)) return found;

    await mkdir(this.#dir, { recursive: true, mode: 0o755 });
    await this.#sweep();
    const self = await identify(process.pid);
    const name = `.tmp-${process.pid}-${self?.startTime ?? 0}-${randomBytes(6).toString('hex')}`;
    const temporary = join(this.#dir, name);
    const scratch = join(temporary, 'scratch');
    try {
      await mkdir(scratch, { recursive: true, mode: 0o755 });
      const target = join(temporary, recipe.file);
      await recipe.build(target, scratch);
      await rm(scratch, { recursive: true, force: true });
      await seal(temporary, target, recipe.mode ?? 0o644);
      await this.#publish(temporary, entry, recipe.file);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
    return found;
  }

  /** Puts a finished entry into its place, unless another process was first with a good one. */
  async #publish(temporary: string, entry: string, file: string): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await rename(temporary, entry);
        return await syncFolder(this.#dir);
      } catch (error) {
        if (!isOccupied(error) || attempt === 3) throw error;
      }
      if (await isSealed(entry, file)) return;
      const broken = `${temporary}-broken`;
      await rename(entry, broken).catch(() => {});
      await rm(broken, { recursive: true, force: true });
    }
  }

  /** Removes what processes that no longer run left half done. */
  async #sweep(): Promise<void> {
    for (const name of await readdir(this.#dir)) {
      const match = /^\.tmp-(\d+)-(\d+)-/.exec(name);
      if (match === null) continue;
      const owner = await identify(Number(match[1]));
      if (owner?.startTime === Number(match[2])) continue;
      await rm(join(this.#dir, name), { recursive: true, force: true });
    }
  }
}

function isOccupied(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error)) return false;
  return error.code === 'ENOTEMPTY' || error.code === 'EEXIST' || error.code === 'ENOTDIR';
}

async function seal(entry: string, path: string, mode: number): Promise<void> {
  await chmod(path, mode);
  {
    await using file = await open(path, 'r');
    await file.sync();
  }
  const { size, ino, mtimeNs } = await stat(path, { bigint: true });
  const value: Seal = {
    size: Number(size),
    sha256: await hashFile(path),
    ino: String(ino),
    mtime: String(mtimeNs),
  };
  await chmod(entry, 0o755);
  await writeDurable(join(entry, SEAL), JSON.stringify(value));
}

async function isSealed(entry: string, file: string): Promise<boolean> {
  const path = join(entry, file);
  try {
    const value = parseSeal(await readFile(join(entry, SEAL), 'utf8'));
    const now = await lstat(path, { bigint: true });
    if (value === undefined || !now.isFile() || Number(now.size) !== value.size) return false;
    if (String(now.ino) === value.ino && String(now.mtimeNs) === value.mtime) return true;
    return (await hashFile(path)) === value.sha256;
  } catch {
    return false;
  }
}

function parseSeal(text: string): Seal | undefined {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) return undefined;
  const { size, sha256, ino, mtime } = value as Record<string, unknown>;
  if (typeof size !== 'number' || typeof sha256 !== 'string') return undefined;
  if (typeof ino !== 'string' || typeof mtime !== 'string') return undefined;
  return { size, sha256, ino, mtime };
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}
