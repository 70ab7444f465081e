import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Entry, FolderNode } from '../model/node.ts';

/** As many as the kernel follows in one path (path_resolution(7)). */
const MAX_LINKS = 40;

/** Makes the folder of a name that is missing, or in whose place something else stands. */
export type FolderMaker = (parent: FolderNode, name: string, inTheWay: Entry | undefined) => FolderNode;

/**
 * Walks to a folder as the guest would, links inside the image followed; `..` of the root is the root.
 * @param from where names of a relative path begin
 * @param make makes what is missing
 * @returns undefined when it does not exist and was not to be made
 * @throws AenvError `image_invalid` for a chain of links without end
 */
export function resolveFolder(
  root: FolderNode,
  from: FolderNode,
  parts: readonly string[],
  make?: FolderMaker,
): FolderNode | undefined {
  // The next component is at the end.
  const todo = [...parts].reverse();
  let at = from;
  let links = 0;
  for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      at = at.parent ?? root;
      continue;
    }
    const entry = at.entries.get(part);
    if (entry?.node.kind === 'folder') {
      at = entry.node;
    } else if (entry?.node.kind === 'symlink') {
      if (++links > MAX_LINKS) throw new AenvError('image_invalid', 'too many links on the way to a folder');
      const target = entry.node.target;
      if (target.startsWith('/')) at = root;
      todo.push(...target.split('/').reverse());
    } else {
      if (make === undefined) return undefined;
      at = make(at, part, entry);
    }
  }
  return at;
}

export interface Place {
  readonly folder: FolderNode;
  readonly name: string;
  readonly entry: Entry;
}

/**
 * Walks to what a path means, a link at its end followed too.
 * @returns undefined when it does not exist; a folder that has no name on the way (`/`, `..`) comes as itself
 */
export function resolvePath(root: FolderNode, path: string): Place | FolderNode | undefined {
  let from = root;
  let parts = path.split('/');
  for (let links = 0; links <= MAX_LINKS; links++) {
    while (parts.at(-1) === '') parts.pop();
    const name = parts.at(-1);
    if (name === undefined || name === '.' || name === '..') return resolveFolder(root, from, parts);
    const folder = resolveFolder(root, from, parts.slice(0, -1));
    const entry = folder?.entries.get(name);
    if (folder === undefined || entry === undefined) return undefined;
    if (entry.node.kind !== 'symlink') return { folder, name, entry };
    parts = entry.node.target.split('/');
    from = parts[0] === '' ? root : folder;
  }
  throw new AenvError('image_invalid', 'too many links on the way to a file');
}
