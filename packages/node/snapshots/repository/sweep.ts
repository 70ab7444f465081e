import { access, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { MANIFEST_FILE, type RepositoryFolders } from './layout.ts';

/**
 * Removes what an earlier process has left half made or half removed, and the snapshots that were to go with it.
 * @returns how many folders
 */
export async function sweep({ drafts, transient, snapshots }: RepositoryFolders): Promise<number> {
  const remnants: string[] = [];
  for (const parent of [drafts, transient]) {
    for (const name of await readdir(parent)) remnants.push(join(parent, name));
  }
  for (const name of await readdir(snapshots)) {
    const folder = join(snapshots, name);
    if (!(await exists(join(folder, MANIFEST_FILE)))) remnants.push(folder);
  }
  for (const folder of remnants) await rm(folder, { recursive: true, force: true });
  // Its name may have been given a moment before the process was ended, and is shown from now on.
  await syncFolder(snapshots);
  return remnants.length;
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
