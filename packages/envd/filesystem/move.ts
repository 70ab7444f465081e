import { lstat, readdir, rename } from 'node:fs/promises';
import { posix } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { stagingPath } from '../files/staging.ts';
import type { Attributes } from '../metadata/attributes.ts';
import type { User } from '../users/users.ts';
import { copyTree } from './copy-tree.ts';
import { errnoOf, fileError } from './errors.ts';
import { makeFolders } from './make-folder.ts';
import { removeTree } from './remove.ts';

export interface MoveParts {
  /** whom missing parents of the destination belong to */
  readonly user: User;
  readonly attributes: Attributes;
  /** aborted when nobody waits for it any more: then all is as before */
  readonly signal: AbortSignal;
}

/**
 * Moves what is at the path, a link itself, as rename(2) does it; also to another file system. Missing parents are made.
 * @throws AenvError `path_not_found`; or the error of the system call
 */
export async function move(source: string, destination: string, parts: MoveParts): Promise<void> {
  try {
    return await rename(source, destination);
  } catch (error) {
    if (errnoOf(error) === 'EXDEV') return moveAcross(source, destination, parts);
    // A missing parent is made below; any other reason comes again.
  }
  await lstat(source).catch((error) => {
    throw fileError(error, source);
  });
  await makeFolders(posix.dirname(destination), parts.user);
  try {
    await rename(source, destination);
  } catch (error) {
    if (errnoOf(error) !== 'EXDEV') throw error;
    await moveAcross(source, destination, parts);
  }
}

/**
 * Copies first, then lets the source vanish and the destination appear, each at once. Until the destination has appeared,
 * a failure leaves everything as it was.
 */
async function moveAcross(source: string, destination: string, { attributes, signal }: MoveParts): Promise<void> {
  await checkDestination(source, destination);
  const arriving = stagingPath(destination, 'new');
  const leaving = stagingPath(source, 'new');
  try {
    await copyTree(source, arriving, attributes, signal);
    await rename(source, leaving);
    try {
      await rename(arriving, destination);
    } catch (error) {
      await rename(leaving, source);
      throw error;
    }
  } catch (error) {
    await removeTree(arriving).catch(() => {});
    throw error;
  }
  await removeTree(leaving).catch((error: unknown) => {
    throw new AenvError('forbidden', `'${destination}' is complete, but '${leaving}' cannot be removed`, {
      cause: error,
    });
  });
}

/** What rename(2) would refuse is refused before the work begins; it is checked again when it ends. */
async function checkDestination(source: string, destination: string): Promise<void> {
  const there = await lstat(destination).catch(() => undefined);
  if (there === undefined) return;
  if (!(await lstat(source)).isDirectory()) {
    if (there.isDirectory()) throw new AenvError('path_invalid', `path '${destination}' is a directory`);
  } else if (!there.isDirectory()) {
    throw new AenvError('path_invalid', `path '${destination}' exists, but it is not a directory`);
  } else if ((await readdir(destination)).length > 0) {
    throw new AenvError('path_exists', `path '${destination}' already exists`);
  }
}
