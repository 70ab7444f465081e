import assert from 'node:assert/strict';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Change, HOST, Lab } from './testing/lab.ts';

const PAGES: Change[] = [
  { page: 1, count: 3, value: 1 },
  { page: 1100, count: 2, value: 2 },
];
const MORE: Change[] = [{ page: 7, count: 1, value: 3 }];

test('a snapshot is taken over with its memory, shares its files, and needs the other repository no more', async () => {
  await using lab = await Lab.open();
  await using other = await Lab.open();
  await other.snapshot('template', PAGES, { asNewBase: true });
  const made = await other.snapshot('one', MORE, { memoryBase: await other.baseFileOf('template') });
  assert.deepEqual(await lab.repository.adopt(other.root, 'one'), made);
  assert.deepEqual(await lab.repository.adopt(other.root, 'one'), made, 'a second time');
  assert.deepEqual(await lab.repository.list(), [made]);
  assert.deepEqual(await readdir(join(lab.root, 'drafts')), []);
  const [name = ''] = await readdir(join(lab.root, 'memory'));
  const [here, there] = await Promise.all([
    stat(join(lab.root, 'memory', name)),
    stat(join(other.root, 'memory', name)),
  ]);
  assert.equal(here.ino, there.ino);
  const before = await other.memoryOf('one');
  await rm(other.root, { recursive: true });
  assert.ok((await lab.memoryOf('one')).equals(before));
  assert.deepEqual((await lab.repository.verify('one')).problems, []);
});

test('what is not there is not taken over, and leaves nothing', async () => {
  await using lab = await Lab.open();
  await using other = await Lab.open();
  await assert.rejects(lab.repository.adopt(other.root, 'none'), { code: 'snapshot_not_found' });
  assert.deepEqual(await readdir(join(lab.root, 'drafts')), []);
  assert.deepEqual(await lab.repository.list(), []);
  await assert.rejects(lab.repository.open('none', HOST), { code: 'snapshot_not_found' });
});
