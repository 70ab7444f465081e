import type { NodeKind } from '../ext4/model/node.ts';
import type { RootFiles } from './root-files.ts';

/** A skeleton is a handful of dot files; what is beyond these limits is left out. */
const MAX_ENTRIES = 256;
const MAX_FILE = 1024 * 1024;

/**
 * Copies a folder of the image to another one, for a user, as useradd(8) does with /etc/skel. Files that exist stay.
 * @param to is not inside of `from`
 */
export async function copySkeleton<N extends { readonly kind: NodeKind }>(
  files: RootFiles<N>,
  from: N,
  to: N,
  uid: number,
  gid: number,
): Promise<void> {
  let left = MAX_ENTRIES;

  async function copyFolder(source: N, target: N): Promise<void> {
    const there = new Set<string>();
    for await (const [name] of files.entries(target)) there.add(name);
    for await (const [name, node] of files.entries(source)) {
      if (left-- <= 0) return;
      if (there.has(name)) continue;
      const { mode, mtime } = await files.attributes(node);
      const attributes = { mode: mode & 0o777, uid, gid, mtime };
      if (node.kind === 'symlink') await files.addSymlink(target, name, await files.target(node), attributes);
      else if (node.kind === 'folder') await copyFolder(node, await files.addFolder(target, name, attributes));
      else if (node.kind === 'file' && (await files.size(node)) <= MAX_FILE) {
        await files.addFile(target, name, await files.content(node), attributes);
      }
    }
  }

  await copyFolder(from, to);
}
