import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { blockdFolders, layerFolder } from '@aenv/block/blockd/layout.ts';
import { type DiskLayer, DiskRecord, SnapshotRecord } from '@aenv/block/blockd/records/schema.ts';
import { layerPaths } from '@aenv/block/layers/writable/paths.ts';
import { verifyCachedBlob } from '@aenv/images/lazy/cache/verify-blob.ts';
import { lazyFolders } from '@aenv/images/lazy/folders.ts';
import { namesIn } from '../../assets/entries.ts';
import type { Folders } from '../../daemon/folders.ts';
import type { Checks } from '../../snapshots/repository/checks.ts';
import { repositoryFolders } from '../../snapshots/repository/layout.ts';
import { damaged, verifyStructure } from './layers.ts';
import { verifyRepository } from './repositories.ts';

/** Snapshots and disks of a home, also while a daemon has them. */
export async function verifyHome(folders: Pick<Folders, 'snapshots' | 'volumes'>, checks: Checks): Promise<void> {
  const { snapshots, root } = repositoryFolders(folders.snapshots);
  await verifyRepository(root, await namesIn(snapshots), checks);
  await verifyDisks(folders.volumes, checks);
  await verifyRemote(join(folders.volumes, 'remote'), checks);
}

async function verifyDisks(root: string, checks: Checks): Promise<void> {
  const folders = blockdFolders(root, '');
  const seen = new Set<string>();
  for (const [folder, schema, artefact] of [
    [folders.disks, DiskRecord, 'record of a disk'],
    [folders.snapshots, SnapshotRecord, 'record of a disk snapshot'],
  ] as const) {
    for (const name of (await namesIn(folder)).filter((known) => known.endsWith('.json') && !known.startsWith('.'))) {
      const path = join(folder, name);
      const record = await checks.of(artefact, path, async () => {
        const parsed = schema.safeParse(JSON.parse(await readFile(path, 'utf8')));
        if (!parsed.success) throw damaged(path, 'it does not have the form of one');
        return parsed.data;
      });
      for (const layer of record?.layers ?? []) await verifyUnder(layer, path, seen, checks);
    }
  }

  async function verifyUnder(layer: DiskLayer, record: string, known: Set<string>, to: Checks): Promise<void> {
    if (layer.kind === 'remote') return;
    const path = layer.kind === 'file' ? layer.path : layerPaths(layerFolder(folders, layer.layer)).sealed;
    if (known.has(path)) return;
    known.add(path);
    // The daemon merges layers and removes those that were: what no record has any more is no fault.
    const before = to.problems.length;
    if (layer.kind === 'own') await verifyStructure(path, to);
    else await to.of('layer of a disk', path, () => access(path));
    const isNamed = await readFile(record, 'utf8').then(
      (text) => text.includes(layer.kind === 'own' ? layer.layer : layer.path),
      () => false,
    );
    if (!isNamed) to.problems.length = before;
  }
}

/** What each thread of the block daemon has of layers that are in registries. */
async function verifyRemote(root: string, checks: Checks): Promise<void> {
  for (const thread of await namesIn(root)) {
    const { blobs } = lazyFolders(join(root, thread));
    for (const blob of await namesIn(blobs)) {
      const { bytes, damaged: bad } = await verifyCachedBlob(join(blobs, blob));
      checks.checkedBytes += bytes;
      for (const { path, why } of bad) {
        await checks.of('part of a remote layer', path, () => Promise.reject(damaged(path, why)));
      }
    }
  }
}
