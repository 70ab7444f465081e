import { lstat, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { identify } from '@aenv/platform/process/identity.ts';
import { namesIn } from '../entries.ts';
import type { AssetPlaces } from '../places.ts';

/** Folders of what is being made name the process that makes it, with its start time. */
const WORK = /^\.(?:work|tmp)-(\d+)-(\d+)-/;

/** Packages of Debian are unpacked when they are here, and may serve whoever unpacks the same ones soon. */
const KEEP_PACKAGES_MS = 24 * 3_600_000;

/**
 * Removes what processes that no longer run have left half made, and packages that were unpacked long ago.
 * @param now `ms` since the epoch
 */
export async function removeLeftovers(places: AssetPlaces, now: number): Promise<void> {
  for (const folder of [places.root, places.layers, places.machines, places.guest, ...places.sources]) {
    for (const name of await namesIn(folder)) {
      const [, pid, startTime] = WORK.exec(name) ?? [];
      if (pid === undefined) continue;
      const owner = await identify(Number(pid));
      if (owner?.startTime !== Number(startTime)) await rm(join(folder, name), { recursive: true, force: true });
    }
  }
  await removePackages(places.packages, now - KEEP_PACKAGES_MS);
}

async function removePackages(folder: string, before: number): Promise<void> {
  for (const name of (await namesIn(folder)).filter((file) => file.endsWith('.deb'))) {
    const path = join(folder, name);
    // Times of modification are those of the mirror.
    const { ctimeMs } = (await lstat(path).catch(() => undefined)) ?? { ctimeMs: before };
    if (ctimeMs < before) await rm(path, { force: true });
  }
}
