import { randomUUID } from 'node:crypto';
import { mkdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isCode } from '@aenv/images/errors/is-code.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { FileLock } from '@aenv/platform/locks/file-lock.ts';
import type { AssetEntry, AssetKind } from '../contract.ts';
import { listEntries, namesIn } from '../entries.ts';
import { homeFilePath, readHomeFiles } from '../homes/home-file.ts';
import { type AssetPlaces, assetPlaces } from '../places.ts';
import { readRoots } from '../roots/read-roots.ts';
import { treeSize } from '../sizes.ts';
import { removeLeftovers } from './leftovers.ts';
import { markEntries } from './mark.ts';

export interface CollectOptions {
  readonly assetsDir: string;
  /** what stays though nobody refers to it, with all that it needs */
  isKept(entry: AssetEntry): boolean;
  /** what a home that is not there any more has claimed stands for so long after its last word, in `ms` */
  readonly keepHomesMs: number;
  /** finds what would be removed, and leaves it */
  readonly dryRun?: boolean;
  /** how long users of assets are waited for; what they have under way may take minutes */
  readonly waitMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

export interface CollectReport {
  readonly removed: readonly RemovedAsset[];
  /** what became free; files that a home shares with what was removed stay */
  readonly freedBytes: number;
  /** files that cannot be read, so that nobody knows what is needed: then nothing is removed */
  readonly blockedBy: readonly string[];
}

export interface RemovedAsset {
  readonly kind: AssetKind;
  readonly path: string;
  readonly bytes: number;
}

/**
 * Removes assets that no home refers to and that are not to be kept. Nobody uses assets while it looks; what it
 * takes away is moved aside in one step each, so that it is there as a whole or not at all, whenever this ends.
 * @throws AenvError `storage_busy` when others use assets for longer than is waited for
 */
export async function collectAssets(options: CollectOptions): Promise<CollectReport> {
  const { waitMs, clock, signal, dryRun = false } = options;
  const root = await realpath(options.assetsDir).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (root === undefined) return { removed: [], freedBytes: 0, blockedBy: [] };
  const places = assetPlaces(root);
  const removed: RemovedAsset[] = [];
  let freedBytes = 0;
  {
    using hold = await new FileLock(places.lock, clock).exclusive(waitMs, signal);
    if (hold === undefined) {
      throw new AenvError('storage_busy', 'images are being pulled, built or captured at the moment');
    }
    if (!dryRun) await forgetHomes(places, clock.now() - options.keepHomesMs);
    const { unneeded, unreadable } = await markEntries(
      await listEntries(places),
      await readRoots(places),
      options.isKept,
    );
    if (unreadable.size > 0) return { removed, freedBytes, blockedBy: [...unreadable].sort() };
    const taken = new Set<string>();
    for (const { kind, path } of unneeded) {
      const { bytes, freeableBytes } = await treeSize(path);
      if (!dryRun) await moveAside(places, path);
      taken.add(dirname(path));
      removed.push({ kind, path, bytes });
      freedBytes += freeableBytes;
    }
    if (!dryRun) {
      // A part of something must not come back after a power cut.
      for (const folder of taken) await syncFolder(folder);
      await removeLeftovers(places, clock.now());
    }
  }
  // This may take a while, and keeps nobody waiting.
  if (!dryRun) await emptyTrash(places);
  return { removed, freedBytes, blockedBy: [] };
}

/** What a home that is not there any more has claimed stands as long as what nobody uses is kept. */
async function forgetHomes(places: AssetPlaces, before: number): Promise<void> {
  for (const { home } of (await readHomeFiles(places.homes)).homes) {
    const isThere = await stat(home).then(
      () => true,
      (error: unknown) => !isCode(error, 'ENOENT'),
    );
    const path = homeFilePath(places.homes, home);
    if (!isThere && (await stat(path)).mtimeMs < before) await rm(path);
  }
}

async function moveAside(places: AssetPlaces, path: string): Promise<void> {
  await mkdir(places.trash, { recursive: true, mode: 0o700 });
  await rename(path, join(places.trash, `${basename(path)}-${randomUUID()}`));
}

async function emptyTrash(places: AssetPlaces): Promise<void> {
  // The folder itself stays: somebody else may be moving things there.
  for (const name of await namesIn(places.trash)) await rm(join(places.trash, name), { recursive: true, force: true });
}
