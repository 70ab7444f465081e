import { access, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { DELTA_FILE, MANIFEST_FILE, NEXT_MANIFEST_FILE, type RepositoryFolders } from './layout.ts';
import { readManifest } from './manifest/shelf.ts';

/**
 * Removes what an earlier process has left half made or half removed, and the snapshots that were to go with it.
 * @returns how many files and folders
 */
export async function sweep({ drafts, transient, snapshots }: RepositoryFolders): Promise<number> {
  const remnants: string[] = [];
  for (const parent of [drafts, transient]) {
    for (const name of await readdir(parent)) remnants.push(join(parent, name));
  }
  for (const name of await readdir(snapshots)) {
    const folder = join(snapshots, name);
    const files: string[] = await readdir(folder).catch(() => []);
    if (!files.includes(MANIFEST_FILE)) remnants.push(folder);
    else remnants.push(...(await supersededIn(folder, name, files)));
  }
  for (const folder of remnants) await rm(folder, { recursive: true, force: true });
  // Its name may have been given a moment before the process was ended, and is shown from now on.
  await syncFolder(snapshots);
  return remnants.length;
}

/** What is left of a delta that was being merged into a base. */
async function supersededIn(folder: string, id: string, files: readonly string[]): Promise<string[]> {
  const found: string[] = files.filter((file) => file === NEXT_MANIFEST_FILE);
  if (files.includes(DELTA_FILE)) {
    const manifest = await readManifest(folder, id).catch(() => undefined);
    if (manifest !== undefined && manifest.memory.delta === undefined) found.push(DELTA_FILE);
  }
  return found.map((file) => join(folder, file));
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
