import { chown, mkdir } from 'node:fs/promises';
import type { BlockdFolders } from '../layout.ts';

/**
 * Makes the folders of the daemon, for the user that it becomes and for nobody else.
 * @param uid undefined to stay who one is
 */
export async function makeFolders(folders: BlockdFolders, outer: readonly string[], uid?: number): Promise<void> {
  for (const folder of [...outer, folders.disks, folders.snapshots, folders.layers, folders.pending]) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (uid !== undefined) await chown(folder, uid, uid);
  }
}

/**
 * Gives up root for good, in all threads (setuid(2) of the C library does that for each of them): no group but its own,
 * no capability, and none to be had, since the program is started with no_new_privs. To be called when all code is loaded:
 * the checkout may lie where only root can read.
 */
export function becomeUser(uid: number): void {
  if (process.setgroups === undefined || process.setgid === undefined || process.setuid === undefined) {
    throw new Error('this system has no users');
  }
  process.setgroups([]);
  process.setgid(uid);
  process.setuid(uid);
}
