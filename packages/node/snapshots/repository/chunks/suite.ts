import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { ChunkStore } from './contract.ts';

/** What every store of chunks must do. @param make a store that is empty */
export function chunkStoreSuite(name: string, make: () => Promise<{ store: ChunkStore } & AsyncDisposable>): void {
  test(`${name}: what was put is there, whole and in parts, until it is deleted`, async () => {
    await using made = await make();
    const { store } = made;
    const bytes = randomBytes(100_000);
    assert.equal(await store.has('a'), false);
    assert.equal(await store.get('a'), undefined);
    await store.put('a', bytes);
    assert.equal(await store.has('a'), true);
    assert.deepEqual(await store.get('a'), bytes);
    assert.deepEqual(await store.get('a', { offset: 5, length: 70_000 }), bytes.subarray(5, 70_005));
    assert.deepEqual(await store.get('a', { offset: 99_990, length: 100 }), bytes.subarray(99_990));
    assert.equal(await store.get('b', { offset: 0, length: 1 }), undefined);
    await store.delete('a');
    await store.delete('a');
    assert.equal(await store.get('a'), undefined);
  });

  test(`${name}: a key keeps its first content, also when many put it at once`, async () => {
    await using made = await make();
    const { store } = made;
    const same = randomBytes(1000);
    await Promise.all(Array.from({ length: 10 }, () => store.put('a', same)));
    await store.put('a', randomBytes(1000));
    assert.deepEqual(await store.get('a'), same);
  });

  test(`${name}: everything that is there is listed, with its size`, async () => {
    await using made = await make();
    const { store } = made;
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`);
    await Promise.all(keys.map((key, i) => store.put(key, Buffer.alloc(i))));
    await store.delete('key-3');
    const listed: [string, number][] = [];
    for await (const { key, sizeBytes } of store.list()) listed.push([key, sizeBytes]);
    const wanted = keys.map((key, i): [string, number] => [key, i]).filter(([key]) => key !== 'key-3');
    assert.deepEqual(listed.sort(), wanted.sort());
  });
}
