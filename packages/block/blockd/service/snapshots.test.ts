import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { blockdFolders } from '../layout.ts';
import { RecordFolder } from '../records/record-folder.ts';
import { SnapshotRecord } from '../records/schema.ts';
import { LayerStore } from './layer-store.ts';
import { Snapshots } from './snapshots.ts';

test('why a snapshot was not taken is told whenever it is asked for, until it is removed', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'snapshots-'));
  t.after(() => rm(root, { recursive: true }));
  const records = new RecordFolder(root, SnapshotRecord);
  const snapshots = new Snapshots(records, new LayerStore(blockdFolders(root, root), silentLogger));
  const record: SnapshotRecord = { version: 1, snapshot: 's', sizeBytes: 4096, layers: [] };
  snapshots.take(record, Promise.reject(new AenvError('no_space', 'the disk is full')));
  await snapshots.idle();
  for (let time = 0; time < 2; time++) await assert.rejects(snapshots.settle('s'), { code: 'no_space' });
  assert.deepEqual(snapshots.list(), []);
  await snapshots.remove('s');
  await assert.rejects(snapshots.settle('s'), { code: 'internal', message: /there is no snapshot s/ });
  snapshots.take(record, Promise.resolve());
  assert.deepEqual([(await snapshots.settle('s')).snapshot, snapshots.list()], ['s', ['s']]);
});
