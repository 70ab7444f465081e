import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { identify } from '@aenv/platform/process/identity.ts';
import { namesIn } from '../entries.ts';
import type { AssetPlaces } from '../places.ts';

/** Folders of what is being made name the process that makes it, with its start time. */
const WORK = /^\.(?:work|tmp)-(\d+)-(\d+)-/;

/** Removes what processes that no longer run have left half made. */
export async function removeLeftovers(places: AssetPlaces): Promise<void> {
  for (const folder of [places.layers, places.machines, places.guest, ...places.sources]) {
    for (const name of await namesIn(folder)) {
      const [, pid, startTime] = WORK.exec(name) ?? [];
      if (pid === undefined) continue;
      const owner = await identify(Number(pid));
      if (owner?.startTime !== Number(startTime)) await rm(join(folder, name), { recursive: true, force: true });
    }
  }
}
