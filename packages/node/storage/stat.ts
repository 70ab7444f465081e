import { realpath, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { blockdFolders } from '@aenv/block/blockd/layout.ts';
import { isCode } from '@aenv/images/errors/is-code.ts';
import { markEntries } from '../assets/collect/mark.ts';
import type { AssetEntry } from '../assets/contract.ts';
import { listEntries, namesIn } from '../assets/entries.ts';
import { type AssetPlaces, assetPlaces } from '../assets/places.ts';
import { readRoots } from '../assets/roots/read-roots.ts';
import { treeSize } from '../assets/sizes.ts';
import type { Folders } from '../daemon/folders.ts';
import { repositoryFolders } from '../snapshots/repository/layout.ts';

/** One kind of what is kept, with what it occupies. Bytes of files that have several names count wherever they are. */
export interface StorageRow {
  readonly what: string;
  readonly path: string;
  readonly count: number;
  readonly bytes: number;
  /** of these, what nobody refers to; absent where that is not told apart */
  readonly unneeded?: number;
  readonly unneededBytes?: number;
}

export interface StorageStat {
  readonly rows: readonly StorageRow[];
  /** of the file system of the home */
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** files that cannot be read: while there are some, nothing is removed */
  readonly unreadable: readonly string[];
}

/** What is kept on this host. It reads only, so a daemon may run meanwhile. */
export async function statStorage(assetsDir: string, folders: Folders): Promise<StorageStat> {
  const rows: StorageRow[] = [];
  let unreadable: readonly string[] = [];
  const root = await realpath(assetsDir).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (root !== undefined) {
    const places = assetPlaces(root);
    const entries = await listEntries(places);
    const marked = await markEntries(entries, await readRoots(places), () => false);
    unreadable = [...marked.unreadable].sort();
    rows.push(...(await assetRows(places, entries, new Set(marked.unneeded))));
  }
  rows.push(...(await homeRows(folders)));
  const { bavail, blocks, bsize } = await statfs(folders.home);
  return { rows, unreadable, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

async function assetRows(
  places: AssetPlaces,
  entries: readonly AssetEntry[],
  unneeded: ReadonlySet<AssetEntry>,
): Promise<readonly StorageRow[]> {
  const kinds = [
    ['layer', 'layers of images', places.layers],
    ['machine', 'captured machines', places.machines],
    ['guest', 'kernels and tools', places.guest],
    ['image', 'names of images', places.images],
    ['vmm', 'QEMU', places.root],
    ['source', 'sources of templates', places.root],
  ] as const;
  const rows: StorageRow[] = [];
  for (const [kind, what, path] of kinds) {
    const own = entries.filter((entry) => entry.kind === kind);
    const sizes = await Promise.all(own.map(async (entry) => [entry, (await treeSize(entry.path)).bytes] as const));
    const idle = sizes.filter(([entry]) => unneeded.has(entry));
    const sum = (all: typeof sizes) => all.reduce((total, [, bytes]) => total + bytes, 0);
    rows.push({
      ...{ what, path, count: own.length, bytes: sum(sizes) },
      ...{ unneeded: idle.length, unneededBytes: sum(idle) },
    });
  }
  return rows;
}

async function homeRows({ home, snapshots, volumes, memory }: Folders): Promise<readonly StorageRow[]> {
  const disks = blockdFolders(volumes, '');
  const repository = repositoryFolders(snapshots);
  const places = [
    ['snapshots', snapshots, repository.snapshots],
    ['disks of sandboxes', volumes, disks.disks],
    ['parts of remote layers', join(volumes, 'remote'), join(volumes, 'remote')],
    ['memory of cold boots', memory, memory],
    ['ledger', join(home, 'ledger'), join(home, 'ledger')],
    ['logs', join(home, 'logs'), join(home, 'logs')],
  ] as const;
  const rows: StorageRow[] = [];
  for (const [what, path, counted] of places) {
    const { bytes } = await treeSize(path);
    rows.push({ what, path, count: (await namesIn(counted)).length, bytes });
  }
  return rows;
}
