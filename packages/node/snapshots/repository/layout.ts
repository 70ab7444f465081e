import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Where a repository keeps what. */
export interface RepositoryFolders {
  readonly root: string;
  /** a folder each, named by its id; one without a manifest is a remnant */
  readonly snapshots: string;
  /** snapshots in the making */
  readonly drafts: string;
  /** snapshots that go with this process */
  readonly transient: string;
  /** contents of memory bases, and the bases' own manifests: named by their digests */
  readonly chunks: string;
  readonly bases: string;
  /** memory bases as files that VMs map; made from the chunks */
  readonly memory: string;
}

export const MANIFEST_FILE = 'manifest.json';
/** one that is to replace the other */
export const NEXT_MANIFEST_FILE = 'manifest.next';
export const DEVICE_STATE_FILE = 'device.state';
export const DELTA_FILE = 'memory.delta';

export function repositoryFolders(root: string): RepositoryFolders {
  return {
    root,
    snapshots: join(root, 'by-id'),
    drafts: join(root, 'drafts'),
    transient: join(root, 'transient'),
    chunks: join(root, 'chunks'),
    bases: join(root, 'bases'),
    memory: join(root, 'memory'),
  };
}

/** VM processes run as users of their own and pass through to the memory bases; they can list nothing and read no more. */
export async function makeRepositoryFolders(folders: RepositoryFolders): Promise<void> {
  const { root, memory } = folders;
  for (const path of Object.values(folders)) {
    const mode = path === root || path === memory ? 0o711 : 0o700;
    await mkdir(path, { recursive: true, mode });
    // The mode of mkdir is cut by the umask and left alone when the folder was there.
    await chmod(path, mode);
  }
}

const SNAPSHOT_ID = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** Whether this can be the id of a snapshot: it is the name of its folder. */
export function isSnapshotId(id: string): boolean {
  return SNAPSHOT_ID.test(id);
}
