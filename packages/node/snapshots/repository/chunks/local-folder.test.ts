import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LocalFolder } from './local-folder.ts';
import { chunkStoreSuite } from './suite.ts';

async function make() {
  const folder = await mkdtemp(join(tmpdir(), 'chunks-'));
  const store = await LocalFolder.open(folder);
  return { folder, store, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

chunkStoreSuite('a local folder', make);

test('a chunk is closed to others, and what was half written is removed at the next start', async () => {
  await using made = await make();
  await made.store.put('a', Buffer.from('whole'));
  assert.equal((await stat(join(made.folder, 'a'))).mode & 0o777, 0o600);
  await writeFile(join(made.folder, 'b.part'), 'ha');
  const again = await LocalFolder.open(made.folder);
  assert.deepEqual(await readdir(made.folder), ['a']);
  await again.put('b', Buffer.from('whole'));
  assert.deepEqual(await again.get('b'), Buffer.from('whole'));
});

test('a key that leads elsewhere is refused', async () => {
  await using made = await make();
  for (const key of ['../a', 'a/b', '', '.a', 'a.part', 'A']) {
    await assert.rejects(async () => made.store.put(key, Buffer.alloc(1)), RangeError, key);
    await assert.rejects(made.store.get(key), RangeError, key);
  }
});
