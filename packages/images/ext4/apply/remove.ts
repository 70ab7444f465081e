import type { FolderNode } from '../model/node.ts';
import { LOST_AND_FOUND, type Tree } from '../model/tree.ts';

/**
 * Removes what stands under a name, links not followed.
 * @param spare leave what the current layer has put there, with the folders above it: a whiteout hides lower layers only
 */
export function removeTree(tree: Tree, folder: FolderNode, name: string, spare: boolean): void {
  const entry = folder.entries.get(name);
  if (entry === undefined) return;
  if (entry.node.kind === 'folder') clearFolder(tree, entry.node, spare);
  if (spare && entry.layer === tree.layer) return;
  // The file system needs this one, empty or not.
  if (isLostAndFound(folder, name)) return;
  tree.unlink(folder, name);
}

/** Removes all that a folder holds, but not the folder. Folders are nested only so deep, so recursion is safe. */
export function clearFolder(tree: Tree, folder: FolderNode, spare: boolean): void {
  for (const name of [...folder.entries.keys()]) removeTree(tree, folder, name, spare);
}

export function isLostAndFound(folder: FolderNode, name: string): boolean {
  return folder.parent === undefined && name === LOST_AND_FOUND;
}
