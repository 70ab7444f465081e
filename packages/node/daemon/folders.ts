import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { assertSearchable } from '@aenv/platform/files/reachable.ts';

/** Where a node keeps what. */
export interface Folders {
  readonly home: string;
  readonly runtime: string;
  /** run folders of VMs; the name is short because sockets lie below it */
  readonly vms: string;
  /** disks of sandboxes, in the hands of the block daemon */
  readonly volumes: string;
  /** sockets of disks, a folder each */
  readonly disks: string;
  /** captured sandboxes */
  readonly snapshots: string;
  /** files that guest memory is mapped from */
  readonly memory: string;
  /** console logs of VMs */
  readonly serial: string;
}

export function foldersOf({ home, runtime }: { readonly home: string; readonly runtime: string }): Folders {
  return {
    home,
    runtime,
    vms: join(runtime, 'vm'),
    volumes: join(home, 'volumes'),
    disks: join(runtime, 'nbd'),
    snapshots: join(home, 'snapshots'),
    memory: join(home, 'memory'),
    serial: join(home, 'logs', 'serial'),
  };
}

/**
 * Makes the folders that VM processes pass through: they run as users without rights, so others may search these, but
 * not list them.
 * @throws AenvError `host_unsupported` naming a parent that is closed to them
 */
export async function makeFolders(folders: Folders): Promise<void> {
  for (const folder of [folders.home, folders.runtime, folders.vms, folders.disks, folders.memory]) {
    await mkdir(folder, { recursive: true, mode: 0o711 });
    // The mode of mkdir is cut by the umask and left alone when the folder was there.
    await chmod(folder, 0o711);
  }
  await mkdir(folders.serial, { recursive: true, mode: 0o700 });
  await assertSearchable(folders.home);
  await assertSearchable(folders.vms);
}
