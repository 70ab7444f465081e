import { foldersOf } from '../../daemon/folders.ts';
import { readHomeFiles } from '../homes/home-file.ts';
import type { AssetPlaces } from '../places.ts';
import { openFilesBelow } from './open-files.ts';
import { addDisks, addSnapshots, References } from './records.ts';

/** Who has a file open is not told from proc(5) without guessing. */
export const OPEN = 'a running process';

/**
 * What the homes that use a folder of assets refer to there. All is read twice: what a sandbox stands on goes from a disk
 * to a snapshot when it pauses, and back when it resumes.
 */
export async function readRoots(places: AssetPlaces): Promise<References> {
  const { homes, unreadable } = await readHomeFiles(places.homes);
  const found = new References();
  for (const path of unreadable) found.unreadable.add(path);
  for (const path of await openFilesBelow(places.root)) found.add(path, OPEN);
  for (const { home, paths } of homes) {
    // These stand until the file of the home is removed, also when the home itself is not there.
    for (const path of paths) found.add(path, `the home ${home}`);
    const folders = foldersOf({ home, runtime: '' });
    for (let pass = 0; pass < 2; pass++) {
      await addSnapshots(folders.snapshots, found);
      await addDisks(folders.volumes, found);
    }
  }
  return found;
}
