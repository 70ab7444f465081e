import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { blockdFolders, layerFolder } from '../layout.ts';
import { RecordFolder } from '../records/record-folder.ts';
import { DiskRecord } from '../records/schema.ts';
import { Disk } from './disk.ts';
import { DiskStore } from './disk-store.ts';
import { LayerStore } from './layer-store.ts';

/** Records on a disk that is full at times. */
class Records extends RecordFolder<DiskRecord> {
  full = false;

  override async put(name: string, record: DiskRecord): Promise<void> {
    if (this.full) throw new AenvError('no_space', 'the disk is full');
    await super.put(name, record);
  }
}

test('layers go with the records that have them, also when one of these could not be written for a while', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'disk-store-'));
  t.after(() => rm(root, { recursive: true }));
  const folders = blockdFolders(root, root);
  for (const folder of [folders.disks, folders.pending]) await mkdir(folder);
  const records = new Records(folders.disks, DiskRecord);
  const store = new DiskStore(records, new LayerStore(folders, silentLogger), [], silentLogger);
  const there = async () => (await readdir(folders.layers)).sort();
  const recordOf = (disk: string, ...uppers: string[]): DiskRecord => {
    return { ...{ version: 1, disk, sizeBytes: 4096, durability: 'strict', layers: [], socket: null }, uppers };
  };
  for (const end of ['written', 'dropped']) {
    for (const layer of ['a', 'b', 'c']) await mkdir(layerFolder(folders, layer), { recursive: true });
    const disk = new Disk(recordOf('d', 'a'));
    await store.add(disk);
    records.full = true;
    for (const upper of ['b', 'c']) await assert.rejects(store.put(disk, recordOf('d', upper)), { code: 'no_space' });
    assert.deepEqual(await there(), ['a', 'b', 'c'], 'a daemon that starts now finds the first record');
    records.full = false;
    if (end === 'written') {
      await store.put(disk, recordOf('d', 'c'));
      assert.deepEqual(await there(), ['c']);
    }
    await store.drop(disk);
    assert.deepEqual(await there(), [], end);
  }
});
