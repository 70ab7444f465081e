import type { ImageFiles } from '../ext4/files/image-files.ts';
import type { FolderNode } from '../ext4/model/node.ts';

/** A skeleton is a handful of dot files; what is beyond these limits is left out. */
const MAX_ENTRIES = 256;
const MAX_FILE = 1024 * 1024;

/**
 * Copies a folder of the image to another one, for a user, as useradd(8) does with /etc/skel. Files that exist stay.
 * @param to is not inside of `from`
 */
export async function copySkeleton(
  files: ImageFiles,
  from: FolderNode,
  to: FolderNode,
  uid: number,
  gid: number,
): Promise<void> {
  let left = MAX_ENTRIES;

  async function copyFolder(source: FolderNode, target: FolderNode): Promise<void> {
    for (const [name, { node }] of source.entries) {
      if (left-- <= 0) return;
      if (target.entries.has(name)) continue;
      const attributes = { mode: node.mode & 0o777, uid, gid, mtime: node.mtime };
      if (node.kind === 'symlink') files.addSymlink(target, name, node.target, attributes);
      else if (node.kind === 'folder') await copyFolder(node, files.addFolder(target, name, attributes));
      else if (node.kind === 'file' && node.size <= MAX_FILE) {
        await files.addFile(target, name, await files.content(node), attributes);
      }
    }
  }

  await copyFolder(from, to);
}
