import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { digestOf } from '../testing/layout.ts';
import { BlobCache, type BlobCacheOptions } from './blob-cache.ts';
import type { BlobHandle } from './blob-handle.ts';
import { completeBlob } from './complete.ts';
import { CHUNK, PART } from './geometry.ts';
import { FakeOrigin } from './testing/fake-origin.ts';

const CHUNKS = 10;
const DATA = randomBytes(CHUNKS * CHUNK);
const DIGEST = digestOf(DATA);
const OTHER = randomBytes(2 * CHUNK);
const OTHER_DIGEST = digestOf(OTHER);

let root = '';
let origin: FakeOrigin;
let cache: BlobCache;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'images-lazy-'));
  origin = new FakeOrigin(DATA);
});
afterEach(async () => {
  await cache.close();
  await rm(root, { recursive: true, force: true });
});

async function start(options: Partial<BlobCacheOptions>): Promise<BlobHandle> {
  cache = await BlobCache.start({
    ...{ root, capacityBytes: 4 * CHUNK, keepFreeBytes: 0, offlineAfterMs: 500, log: silentLogger, openFiles: 2 },
    ...options,
  });
  return cache.open({ digest: DIGEST, size: DATA.length, origin });
}

async function check(blob: BlobHandle, offset: number, length: number, data = DATA): Promise<void> {
  const target = Buffer.alloc(length);
  if (!blob.readSync(target, offset)) await blob.read(target, offset);
  assert.ok(target.equals(data.subarray(offset, offset + length)), `${offset}+${length}`);
}

const files = async (digest = DIGEST) =>
  (await readdir(join(root, digest.replace(':', '-')))).filter((name) => name.startsWith('chunk'));

test('the cache stays within its size, whatever is read, and what is read is right', async () => {
  const blob = await start({});
  for (let round = 0; round < 2; round++) {
    for (let chunk = 0; chunk < CHUNKS; chunk++) {
      await check(blob, chunk * CHUNK, CHUNK);
      assert.ok(cache.usage.usedBytes <= 4 * CHUNK);
    }
  }
  await cache.settle();
  assert.ok(cache.usage.usedBytes <= 0.95 * 4 * CHUNK);
  assert.ok(cache.usage.usedBytes >= 2 * CHUNK);
  // What is kept may be a part of a chunk: one that was evicted while it was read comes back in parts.
  const kept = (await files()).length * CHUNK;
  assert.ok(kept >= cache.usage.usedBytes && kept <= 4 * CHUNK, `${kept} bytes of files`);
});

test('a chunk that is in use again and again stays, those that were read once go', async () => {
  const blob = await start({});
  await check(blob, 0, PART);
  for (let chunk = 1; chunk < CHUNKS; chunk++) {
    await check(blob, chunk * CHUNK, CHUNK);
    await check(blob, 0, PART);
    await cache.settle();
  }
  assert.equal(origin.asked.filter(({ offset }) => offset === 0).length, 1);
});

test('complete blobs go last', async () => {
  const blob = await start({});
  const other = new FakeOrigin(OTHER);
  const complete = await cache.open({ digest: OTHER_DIGEST, size: OTHER.length, origin: other });
  await check(complete, 0, OTHER.length, OTHER);
  await completeBlob(complete.blob, new AbortController().signal);
  await complete.close();
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    await check(blob, chunk * CHUNK, CHUNK);
    await cache.settle();
  }
  assert.equal((await files(OTHER_DIGEST)).length, 2);
  assert.equal(other.bytes, OTHER.length);
});

test('a blob that is larger than the cache is verified nevertheless, and its parts keep their checksums', async () => {
  const blob = await start({});
  await completeBlob(blob.blob, new AbortController().signal);
  await cache.settle();
  assert.ok(cache.isVerified(DIGEST));
  assert.ok(cache.usage.usedBytes <= 4 * CHUNK);
  await cache.close();
  // What was evicted has to come back as it was, also after a restart.
  const again = await start({});
  origin.data = Buffer.from(DATA);
  for (let at = 0; at < CHUNKS * CHUNK; at += CHUNK) origin.data[at] = (origin.data[at] ?? 0) ^ 1;
  let refused = 0;
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    await check(again, chunk * CHUNK, 10).catch((error: { code?: string }) => {
      assert.equal(error.code, 'layer_corrupt');
      refused++;
    });
  }
  assert.ok(refused >= CHUNKS - 4);
  origin.data = DATA;
  for (let chunk = 0; chunk < CHUNKS; chunk++) await check(again, chunk * CHUNK, 10);
});

test('where the disk has to stay free nothing is kept, and reads are right', async () => {
  let free = 0;
  const blob = await start({ capacityBytes: 100 * CHUNK, keepFreeBytes: 10 * CHUNK, freeBytes: async () => free });
  await cache.settle();
  await check(blob, 0, CHUNK);
  await cache.settle();
  await check(blob, 0, CHUNK);
  assert.equal(cache.usage.usedBytes, 0);
  assert.equal(origin.bytes, 2 * CHUNK);
  free = 20 * CHUNK;
  for (let round = 0; round < 5; round++) {
    await check(blob, 0, 4 * CHUNK);
    await cache.settle();
  }
  assert.ok(cache.usage.usedBytes >= 4 * CHUNK);
});

test('space that others take from the disk is given back', async () => {
  let free = 100 * CHUNK;
  const blob = await start({ capacityBytes: 100 * CHUNK, keepFreeBytes: 10 * CHUNK, freeBytes: async () => free });
  await check(blob, 0, 6 * CHUNK);
  await cache.settle();
  assert.equal(cache.usage.usedBytes, 6 * CHUNK);
  free = 7 * CHUNK;
  await check(blob, 6 * CHUNK, 4 * CHUNK);
  await cache.settle();
  assert.ok(cache.usage.usedBytes <= 7 * CHUNK);
});

test('readers and eviction at the same time, with few files open: never a wrong byte', async () => {
  const blob = await start({ flushAfterMs: 5 });
  const readers = Array.from({ length: 12 }, async (_, reader) => {
    for (let turn = 0; turn < 60; turn++) {
      const offset = ((reader * 7919 + turn * 104_729) % (CHUNKS * 64)) * PART;
      await check(blob, offset, Math.min(3 * PART, DATA.length - offset));
    }
  });
  await Promise.all(readers);
  await cache.settle();
  assert.ok(cache.usage.usedBytes <= 4 * CHUNK);
});
