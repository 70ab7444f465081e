import { lstat, readdir, stat } from 'node:fs/promises';
import { isStaging } from '../../files/staging.ts';
import { errnoOf } from '../errors.ts';

/**
 * The names in a folder, except those of unfinished uploads, with one byte in each character; undefined when the folder
 * has vanished.
 */
export async function readNames(folder: Buffer): Promise<string[] | undefined> {
  try {
    const names = await readdir(folder, { encoding: 'buffer' });
    return names.map((name) => name.toString('latin1')).filter((name) => !isStaging(name));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Whether something has been written into a file. */
export async function hasContent(path: Buffer): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.isFile() === true && stats.size > 0;
}

export async function isFolder(path: Buffer): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() === true;
}

export async function inodeOf(path: Buffer): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.ino;
}
