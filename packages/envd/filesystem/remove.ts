import { lstat, readdir, rmdir, unlink } from 'node:fs/promises';
import { errnoOf } from './errors.ts';

const SLASH = Buffer.from('/');

/**
 * Removes what is at the path, a folder with all that is in it; links are removed, not followed. What is not there is
 * fine. Names are bytes all the way, because any byte may be in them.
 */
export async function removeTree(path: string | Buffer): Promise<void> {
  const target = Buffer.from(path);
  if (!(await isFolder(target))) return ignoreMissing(unlink(target));
  await removeFolder(target);
}

async function removeFolder(folder: Buffer): Promise<void> {
  // Somebody may still be writing into it; a few rounds are enough for whoever is not doing so on purpose.
  for (let round = 0; ; round++) {
    for (const entry of await entriesOf(folder)) {
      const path = Buffer.concat([folder, SLASH, entry.name]);
      if (entry.isDirectory()) await removeFolder(path);
      else await ignoreMissing(unlink(path));
    }
    try {
      await ignoreMissing(rmdir(folder));
      return;
    } catch (error) {
      if (errnoOf(error) !== 'ENOTEMPTY' || round === 3) throw error;
    }
  }
}

async function entriesOf(folder: Buffer) {
  try {
    return await readdir(folder, { encoding: 'buffer', withFileTypes: true });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function isFolder(path: Buffer): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}

async function ignoreMissing(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}
