import { readdir, rmdir, unlink } from 'node:fs/promises';
import { errnoOf } from './errors.ts';

const SLASH = Buffer.from('/');

/**
 * Removes what is at the path, a folder with all that is in it; links are removed, not followed. What is not there is
 * fine. Names are bytes all the way, because any byte may be in them.
 */
export async function removeTree(path: string | Buffer): Promise<void> {
  const target = Buffer.from(path);
  try {
    await ignoreMissing(unlink(target));
  } catch (error) {
    // unlink(2) tells by this that it is a folder, which spares a look at everything that is none.
    if (errnoOf(error) !== 'EISDIR') throw error;
    await removeFolder(target);
  }
}

async function removeFolder(folder: Buffer): Promise<void> {
  // Somebody may still be writing into it; a few rounds are enough for whoever is not doing so on purpose.
  for (let round = 0; ; round++) {
    for (const name of await namesOf(folder)) await removeTree(Buffer.concat([folder, SLASH, name]));
    try {
      await ignoreMissing(rmdir(folder));
      return;
    } catch (error) {
      if (errnoOf(error) !== 'ENOTEMPTY' || round === 3) throw error;
    }
  }
}

async function namesOf(folder: Buffer): Promise<Buffer[]> {
  try {
    return await readdir(folder, { encoding: 'buffer' });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
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
