import { constants } from 'node:fs';
import { chmod, lchown, open, readlink, rename, unlink } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { quoted } from '../tar/reader.ts';
import { type FolderMaker, join, type RootDir } from './root-dir.ts';

/** Account files and the like are small; anything larger is none. */
const MAX_TEXT = 1024 * 1024;

const MAKE_ONLY: FolderMaker = {
  clear: (path) => Promise.reject(new AenvError('image_invalid', `a file stands in the way at ${quoted(path)}`)),
  made() {},
};

/**
 * The real path of a file of an image, all links on the way and at its end followed inside the root.
 * @returns undefined when it does not exist
 */
export async function resolveFile(root: RootDir, name: string): Promise<string | undefined> {
  let parts = name.split('/');
  for (let links = 0; links < 40; links++) {
    const folder = await root.resolveFolder(parts.slice(0, -1));
    if (folder === undefined) return undefined;
    const last = parts.at(-1) ?? '';
    if (last === '' || last === '.' || last === '..') return root.resolveFolder(parts);
    const path = join(folder, last);
    const status = await root.lstat(path);
    if (status === undefined) return undefined;
    if (!status.isSymbolicLink()) return path;
    const target = await readlink(root.host(path), { encoding: 'latin1' });
    parts = target.startsWith('/') ? target.split('/') : [...folder.split('/'), ...target.split('/')];
  }
  throw new AenvError('image_invalid', `too many links on the way to ${quoted(name)}`);
}

/**
 * The text of a regular file of an image, one byte a character (latin1), so that writing it back changes nothing.
 * @returns undefined when there is no such regular file
 * @throws AenvError `image_invalid` when it is larger than 1 MiB
 */
export async function readText(root: RootDir, name: string): Promise<string | undefined> {
  const path = await resolveFile(root, name);
  if (path === undefined || !(await root.lstat(path))?.isFile()) return undefined;
  await using file = await open(root.host(path), constants.O_RDONLY | constants.O_NOFOLLOW);
  if ((await file.stat()).size > MAX_TEXT) {
    throw new AenvError('image_invalid', `${quoted(name)} is larger than 1 MiB`);
  }
  return file.readFile({ encoding: 'latin1' });
}

/**
 * Writes a file of an image in one step. An existing one keeps its owner and mode and is replaced where it really is;
 * a new one belongs to root.
 * @param text one byte a character
 * @param mode for a new file
 */
export async function writeText(root: RootDir, name: string, text: string, mode: number): Promise<void> {
  const parts = name.split('/');
  const existing = await resolveFile(root, name);
  const path = existing ?? join(await makeFolder(root, parts.slice(0, -1)), parts.at(-1) ?? '');
  const status = await root.lstat(path);
  if (status?.isDirectory()) throw new AenvError('image_invalid', `${quoted(name)} is a folder`);
  const slash = path.lastIndexOf('/');
  const temporary = join(path.slice(0, Math.max(0, slash)), '.aenv-new');
  // Whatever has this name in the image is not followed: the file is made afresh.
  if ((await root.lstat(temporary)) !== undefined) await unlink(root.host(temporary));
  {
    await using file = await open(root.host(temporary), 'wx', 0o600);
    await file.writeFile(text, 'latin1');
  }
  await lchown(root.host(temporary), status?.uid ?? 0, status?.gid ?? 0);
  await chmod(root.host(temporary), status?.isFile() ? status.mode & 0o7777 : mode);
  await rename(root.host(temporary), root.host(path));
}

/** The real path of a folder of an image, made with all above it (0755, owned by root) where missing. */
export async function makeFolder(root: RootDir, parts: readonly string[]): Promise<string> {
  return (await root.resolveFolder(parts, MAKE_ONLY)) ?? '';
}
