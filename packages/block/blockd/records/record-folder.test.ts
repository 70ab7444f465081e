import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { RecordFolder } from './record-folder.ts';
import { SnapshotRecord } from './schema.ts';

test('what a daemon that was killed had begun to write is no record, and is gone after the next start', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'block-records-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const records = new RecordFolder(folder, SnapshotRecord);
  const record = { version: 1 as const, snapshot: 's1', sizeBytes: 512, layers: [] };
  await records.put('s1', record);
  await writeFile(join(folder, '.0123456789ab.tmp'), '{"version":1,"snap');
  await writeFile(join(folder, 'notes.txt'), 'somebody else');
  assert.deepEqual(await records.load(), [record]);
  assert.deepEqual((await readdir(folder)).sort(), ['notes.txt', 's1.json']);
});
