import { chown, mkdir, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { User } from '../users/users.ts';
import { errnoOf } from './errors.ts';

/**
 * Makes a folder and its missing parents, each owned by the user (0755). Many may do this at once for the same path.
 * @returns whether the folder itself was made, false when it was there
 * @throws AenvError `path_invalid` when it, or a parent, is something else
 */
export async function makeFolders(path: string, user: User): Promise<boolean> {
  // From the deepest upwards, because usually nearly all of it exists.
  try {
    return await makeOne(path, user);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || path === '/') throw error;
  }
  await makeFolders(posix.dirname(path), user);
  return makeOne(path, user);
}

async function makeOne(path: string, user: User): Promise<boolean> {
  try {
    await mkdir(path, 0o755);
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') throw notFolder(posix.dirname(path));
    if (errnoOf(error) !== 'EEXIST') throw error;
    const there = await stat(path).catch(() => undefined);
    if (there?.isDirectory()) return false;
    throw notFolder(path);
  }
  await chown(path, user.uid, user.gid);
  return true;
}

function notFolder(path: string): AenvError {
  return new AenvError('path_invalid', `path '${path}' exists, but it is not a directory`);
}
