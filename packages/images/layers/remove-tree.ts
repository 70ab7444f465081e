import { readdir, rmdir, unlink } from 'node:fs/promises';
import { join, type RootDir } from './root-dir.ts';

/**
 * Removes what stands at a path, links not followed. Everything in `keep` stays, with the folders above it: a whiteout
 * hides only lower layers, so what its own layer has put there already remains.
 * @param onRemoved told of every path that is gone
 */
export async function removeTree(
  root: RootDir,
  path: string,
  onRemoved: (path: string) => void,
  keep: ReadonlySet<string> = new Set(),
): Promise<void> {
  const status = await root.lstat(path);
  if (status === undefined) return;
  if (!status.isDirectory()) {
    if (keep.has(path)) return;
    await unlink(root.host(path));
    onRemoved(path);
    return;
  }
  await clearFolder(root, path, onRemoved, keep);
  if (keep.has(path)) return;
  await rmdir(root.host(path));
  root.forget();
  onRemoved(path);
}

/** Removes all that a folder holds, but not the folder. */
export async function clearFolder(
  root: RootDir,
  path: string,
  onRemoved: (path: string) => void,
  keep: ReadonlySet<string> = new Set(),
): Promise<void> {
  for (const name of await readdir(root.host(path), { encoding: 'latin1' })) {
    await removeTree(root, join(path, name), onRemoved, keep);
  }
}
