import { join } from 'node:path';

/** Where a block daemon keeps what. */
export interface BlockdFolders {
  /** disks as they are kept */
  readonly disks: string;
  readonly snapshots: string;
  /** layers that were or are uppers of disks, a folder each */
  readonly layers: string;
  /** held by the daemon that owns all this */
  readonly lock: string;
  /** logs of index entries that are not synced yet, in memory */
  readonly pending: string;
  readonly control: string;
  /** what the running daemon says of itself */
  readonly state: string;
}

/**
 * @param root folder on a disk, for what lasts
 * @param runtime folder in memory, for what lasts as long as the host is up; short, since a socket lies in it
 */
export function blockdFolders(root: string, runtime: string): BlockdFolders {
  return {
    disks: join(root, 'disks'),
    snapshots: join(root, 'snapshots'),
    layers: join(root, 'layers'),
    lock: join(root, 'owner.lock'),
    pending: join(runtime, 'pending'),
    control: join(runtime, 'control.sock'),
    state: join(runtime, 'state.json'),
  };
}

export function layerFolder(folders: BlockdFolders, layer: string): string {
  return join(folders.layers, layer);
}
