import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { syncFolder, writeDurable } from '@aenv/platform/files/durable.ts';
import { markUsed } from '@aenv/platform/files/mark-used.ts';
import { identify } from '@aenv/platform/process/identity.ts';

/** What one artefact is and how it comes to be. */
export interface Recipe {
  /** `kernel`, `tools`, …: the first part of the entry's name */
  readonly kind: string;
  /** sha256 of all inputs */
  readonly digest: string;
  /** the files that the artefact consists of, with their modes */
  readonly files: Readonly<Record<string, number>>;
  /** Writes the files into the empty folder `entry`; `scratch` is another one, removed afterwards. */
  build(entry: string, scratch: string): Promise<void>;
}

/** Written beside the files: what the bytes of each were when it was complete. */
type Seals = Readonly<Record<string, Seal>>;

interface Seal {
  readonly size: number;
  readonly sha256: string;
  /** inode and mtime in ns at sealing: as long as they are the same, the bytes need not be read again */
  readonly ino: string;
  readonly mtime: string;
}

const SEALS = 'seals.json';

/**
 * Artefacts by the digest of their inputs: `<dir>/<kind>-<digest>/`. An entry is made in a temporary folder and renamed
 * into place, so it is complete or absent, also when several processes build it at once. An entry whose bytes are not
 * those that were sealed is never used, but built again.
 */
export class AssetCache {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Whether the artefact is there and whole. */
  has(recipe: Pick<Recipe, 'kind' | 'digest' | 'files'>): Promise<boolean> {
    return isSealed(this.#entry(recipe), Object.keys(recipe.files));
  }

  /** The folder of the artefact, which is built when it is not there or broken. */
  async get(recipe: Recipe): Promise<string> {
    const entry = this.#entry(recipe);
    const names = Object.keys(recipe.files);
    if ((await isSealed(entry, names)) && (await markUsed(entry))) return entry;

    await mkdir(this.#dir, { recursive: true, mode: 0o755 });
    await this.#sweep();
    const self = await identify(process.pid);
    const name = `.tmp-${process.pid}-${self?.startTime ?? 0}-${randomBytes(6).toString('hex')}`;
    const temporary = join(this.#dir, name);
    const fresh = join(temporary, 'entry');
    const scratch = join(temporary, 'scratch');
    try {
      await mkdir(fresh, { recursive: true, mode: 0o755 });
      await mkdir(scratch);
      await recipe.build(fresh, scratch);
      await sealAll(fresh, recipe.files);
      await this.#publish(fresh, entry, names);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
    return entry;
  }

  #entry(recipe: Pick<Recipe, 'kind' | 'digest'>): string {
    return join(this.#dir, `${recipe.kind}-${recipe.digest}`);
  }

  /** Puts a finished entry into its place, unless another process was first with a good one. */
  async #publish(fresh: string, entry: string, names: readonly string[]): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await rename(fresh, entry);
        return await syncFolder(this.#dir);
      } catch (error) {
        if (!isOccupied(error) || attempt === 3) throw error;
      }
      if (await isSealed(entry, names)) return;
      const broken = `${fresh}-broken-${attempt}`;
      // Renamed into the temporary folder, which goes away as a whole; another process may have been quicker.
      await rename(entry, broken).catch(() => {});
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

async function sealAll(entry: string, files: Readonly<Record<string, number>>): Promise<void> {
  const seals = await Promise.all(
    Object.entries(files).map(async ([name, mode]) => [name, await seal(join(entry, name), mode)] as const),
  );
  await chmod(entry, 0o755);
  await writeDurable(join(entry, SEALS), JSON.stringify(Object.fromEntries(seals)));
}

async function seal(path: string, mode: number): Promise<Seal> {
  await using file = await open(path, 'r');
  await file.chmod(mode);
  await file.sync();
  const { size, ino, mtimeNs } = await file.stat({ bigint: true });
  return { size: Number(size), sha256: await hashFile(path), ino: String(ino), mtime: String(mtimeNs) };
}

async function isSealed(entry: string, names: readonly string[]): Promise<boolean> {
  try {
    const seals = parseSeals(await readFile(join(entry, SEALS), 'utf8'));
    const checks = names.map((name) => isIntact(join(entry, name), seals[name]));
    return (await Promise.all(checks)).every((intact) => intact);
  } catch {
    return false;
  }
}

async function isIntact(path: string, seal: Seal | undefined): Promise<boolean> {
  const now = await lstat(path, { bigint: true });
  if (seal === undefined || !now.isFile() || Number(now.size) !== seal.size) return false;
  if (String(now.ino) === seal.ino && String(now.mtimeNs) === seal.mtime) return true;
  return (await hashFile(path)) === seal.sha256;
}

/**
 * Reads every byte of an artefact and compares it with what was sealed.
 * @param entry folder of the artefact
 * @returns bytes that were read, and the files that are not as they were; the list of seals is one of them
 */
export async function checkEntry(
  entry: string,
): Promise<{ readonly bytes: number; readonly damaged: readonly string[] }> {
  const list = join(entry, SEALS);
  const seals = await readFile(list, 'utf8')
    .then(parseSeals)
    .catch(() => undefined);
  if (seals === undefined || Object.keys(seals).length === 0) return { bytes: 0, damaged: [list] };
  const damaged: string[] = [];
  let bytes = 0;
  for (const [name, seal] of Object.entries(seals)) {
    const path = join(entry, name);
    const found = await lstat(path).catch(() => undefined);
    bytes += found?.size ?? 0;
    const isWhole = found?.isFile() === true && found.size === seal.size && (await hashFile(path)) === seal.sha256;
    if (!isWhole) damaged.push(path);
  }
  return { bytes, damaged };
}

/** What a file of an artefact was when that was complete. @returns undefined for one that is of none */
export async function sealOf(
  path: string,
): Promise<{ readonly sizeBytes: number; readonly digest: string } | undefined> {
  const seals = await readFile(join(dirname(path), SEALS), 'utf8')
    .then(parseSeals)
    .catch(() => undefined);
  const seal = seals?.[basename(path)];
  return seal === undefined ? undefined : { sizeBytes: seal.size, digest: `sha256:${seal.sha256}` };
}

function parseSeals(text: string): Seals {
  const seals: Record<string, Seal> = {};
  for (const [name, value] of Object.entries(JSON.parse(text) as Record<string, Record<string, unknown>>)) {
    const { size, sha256, ino, mtime } = value;
    if (typeof size !== 'number' || typeof sha256 !== 'string') continue;
    if (typeof ino !== 'string' || typeof mtime !== 'string') continue;
    seals[name] = { size, sha256, ino, mtime };
  }
  return seals;
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}
