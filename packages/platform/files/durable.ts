import { randomBytes } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const TEMPORARY = /^\.[0-9a-f]{12}\.tmp$/;

/**
 * Writes a file so that after a crash either the old content or all of the new one is there: temporary file in the same
 * folder, fsync, rename, fsync of the folder. `mode` is applied before the first byte is written.
 */
export async function writeDurable(path: string, data: string | Uint8Array, mode = 0o644): Promise<void> {
  const temporary = join(dirname(path), `.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await using file = await open(temporary, 'wx', mode);
    await file.chmod(mode);
    await file.writeFile(data);
    await file.sync();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Removes what writers that were killed have left in a folder. Only for who is alone in writing there. */
export async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (TEMPORARY.test(name)) await rm(join(folder, name), { force: true });
  }
}

/** Makes renames and removals in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  await using folder: FileHandle = await open(path, 'r');
  await folder.sync();
}
