import { chmod, constants, copyFile, lchown, mkdir, readdir, readlink, symlink } from 'node:fs/promises';
import { join, type RootDir } from '../layers/root-dir.ts';

/** A skeleton is a handful of dot files; what is beyond these limits is left out. */
const MAX_ENTRIES = 256;
const MAX_FILE = 1024 * 1024;

/**
 * Copies a folder of the image to another one, for a user, as useradd(8) does with /etc/skel. Files that exist stay.
 * Both paths are real folders inside the root.
 */
export async function copySkeleton(root: RootDir, from: string, to: string, uid: number, gid: number): Promise<void> {
  let left = MAX_ENTRIES;

  async function copyFolder(source: string, target: string): Promise<void> {
    for (const name of await readdir(root.host(source), { encoding: 'latin1' })) {
      if (left-- <= 0) return;
      await copy(join(source, name), join(target, name));
    }
  }

  async function copy(source: string, target: string): Promise<void> {
    const status = await root.lstat(source);
    if (status === undefined || (await root.lstat(target)) !== undefined) return;
    if (status.isSymbolicLink()) {
      await symlink(await readlink(root.host(source), { encoding: 'buffer' }), root.host(target));
    } else if (status.isDirectory()) {
      await mkdir(root.host(target), { mode: 0o700 });
      await copyFolder(source, target);
    } else if (status.isFile() && status.size <= MAX_FILE) {
      await copyFile(root.host(source), root.host(target), constants.COPYFILE_EXCL);
    } else {
      return;
    }
    await lchown(root.host(target), uid, gid);
    if (!status.isSymbolicLink()) await chmod(root.host(target), status.mode & 0o777);
  }

  await copyFolder(from, to);
}
