import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdtemp, open, readdir, rm, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { memorySink } from '@aenv/block/testing/memory-sink.ts';
import { ZFileSink } from '@aenv/block/zfile/sink.ts';
import { openZFile } from '@aenv/block/zfile/source.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { digestOf } from '../testing/layout.ts';
import { BlobCache, type BlobCacheOptions } from './blob-cache.ts';
import type { BlobHandle } from './blob-handle.ts';
import { completeBlob } from './complete.ts';
import { CHUNK, PART } from './geometry.ts';
import { down, FakeOrigin } from './testing/fake-origin.ts';

const DATA = randomBytes(2 * CHUNK + 3 * PART + 123);
const DIGEST = digestOf(DATA);
const SIZE = DATA.length;

let root = '';
let origin: FakeOrigin;
let caches: BlobCache[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'images-lazy-'));
  origin = new FakeOrigin(DATA);
});
afterEach(async () => {
  for (const cache of caches) await cache.close();
  caches = [];
  await rm(root, { recursive: true, force: true });
});

async function start(options: Partial<BlobCacheOptions> = {}): Promise<BlobCache> {
  const cache = await BlobCache.start({
    root,
    capacityBytes: 100 * CHUNK,
    keepFreeBytes: 0,
    offlineAfterMs: 500,
    log: silentLogger,
    flushAfterMs: 60_000,
    ...options,
  });
  caches.push(cache);
  return cache;
}

const opened = async (options: Partial<BlobCacheOptions> = {}) =>
  (await start(options)).open({ digest: DIGEST, size: SIZE, origin });

async function read(blob: BlobHandle, offset: number, length: number, signal?: AbortSignal): Promise<Buffer> {
  const target = Buffer.alloc(length);
  if (!blob.readSync(target, offset)) await blob.read(target, offset, signal);
  return target;
}

async function check(blob: BlobHandle, offset: number, length: number): Promise<void> {
  assert.ok((await read(blob, offset, length)).equals(DATA.subarray(offset, offset + length)), `${offset}+${length}`);
}

const chunkFile = (number: number) => join(root, DIGEST.replace(':', '-'), `chunk-00000${number}`);

test('any range reads as the blob has it, and every part is fetched once', async () => {
  const blob = await opened();
  await Promise.all(
    Array.from({ length: 300 }, () => {
      const offset = randomInt(SIZE);
      return check(blob, offset, randomInt(1, Math.min(SIZE - offset, 3 * PART) + 1));
    }),
  );
  await check(blob, 0, SIZE);
  assert.equal(origin.bytes, SIZE);
  assert.ok(origin.asked.every(({ offset, length }) => length <= 16 * PART && offset % PART === 0));
});

test('what a reader finds damaged is fetched anew, at once and the next time, and never given out', async () => {
  const sink = memorySink();
  const zfile = await ZFileSink.begin(sink, { compression: 'lz4', blockSize: 4096 });
  await zfile.append(DATA.subarray(0, 8 * PART));
  await zfile.finish();
  const sound = sink.bytes();
  origin = new FakeOrigin(Buffer.from(sound));
  const cache = await start();
  const unpacked = await openZFile(await cache.open({ digest: digestOf(sound), size: sound.length, origin }));
  const at = 3 * PART;
  const readPart = async () => {
    const target = Buffer.alloc(PART);
    if (!unpacked.readSync(target, at)) await unpacked.read(target, at);
    assert.ok(target.equals(DATA.subarray(at, at + PART)));
  };
  origin.data.fill(0, at, at + PART);
  await assert.rejects(readPart(), { code: 'layer_corrupt' });
  await assert.rejects(readPart(), { code: 'layer_corrupt' });
  let once = true;
  origin.before = () => {
    if (once) once = false;
    else origin.data = sound;
  };
  await readPart();
  const asked = origin.asked.length;
  await readPart();
  assert.equal(origin.asked.length, asked, 'now it is kept');
});

test('a range of neighbours is one request, of at most 1 MiB', async () => {
  const blob = await opened();
  await check(blob, 100, 5 * PART);
  assert.deepEqual(origin.asked, [{ offset: 0, length: 6 * PART }]);
  await check(blob, CHUNK, 20 * PART);
  assert.deepEqual(
    origin.asked.slice(1).map(({ length }) => length / PART),
    [16, 4],
  );
});

test('many who want the same part share one request', async () => {
  const blob = await opened();
  await Promise.all(Array.from({ length: 50 }, (_, at) => check(blob, 3 * PART + at, 100)));
  assert.equal(origin.asked.length, 1);
});

test('who reads on gets more and more at a time, who jumps does not', async () => {
  const cache = await start();
  const blob = await cache.open({ digest: DIGEST, size: SIZE, origin });
  const asked = async (part: number) => {
    origin.asked.length = 0;
    await check(blob, part * PART, 10);
    await cache.settle();
    return origin.asked.reduce((sum, { length }) => sum + length, 0) / PART;
  };
  assert.equal(await asked(0), 1);
  assert.equal(await asked(1), 16);
  assert.equal(await asked(10), 0);
  assert.equal(await asked(17), 32);
  assert.equal(await asked(110), 1);
  assert.equal(await asked(49), 63, 'without what is there already');
});

test('what is here is read at once; what is not leaves the target as it was', async () => {
  const cache = await start();
  const blob = await cache.open({ digest: DIGEST, size: SIZE, origin });
  const target = Buffer.alloc(2 * PART, 7);
  assert.equal(blob.readSync(target, 0), false);
  await check(blob, 0, PART);
  await cache.settle();
  assert.equal(blob.readSync(target, 0), false);
  assert.ok(target.every((byte) => byte === 7));
  assert.equal(blob.readSync(target.subarray(0, 500), 1000), true);
  assert.ok(target.subarray(0, 500).equals(DATA.subarray(1000, 1500)));
  assert.throws(() => blob.readSync(target, SIZE - 10), RangeError);
  await assert.rejects(blob.read(target, -1), RangeError);
});

test('a part is given out as soon as it has come, not only with the whole request', async () => {
  const blob = await opened();
  let go = () => {};
  origin.step = PART;
  origin.between = (filled) =>
    new Promise<void>((resolve) => {
      go = resolve;
      if (filled !== 3 * PART) resolve();
    });
  const whole = check(blob, 0, 8 * PART);
  // The origin has stopped in the middle.
  await check(blob, 0, 2 * PART);
  go();
  await whole;
  assert.equal(origin.asked.length, 1);
});

test('what was made durable is there after a restart, the rest is fetched again', async () => {
  const first = await start();
  const blob = await first.open({ digest: DIGEST, size: SIZE, origin });
  await check(blob, 0, PART);
  await first.settle();
  await check(blob, CHUNK, PART);
  origin.asked.length = 0;
  // As after a crash: the first one has not closed.
  const again = await (await start()).open({ digest: DIGEST, size: SIZE, origin });
  await check(again, 0, PART);
  assert.equal(origin.asked.length, 0);
  await check(again, CHUNK, PART);
  assert.deepEqual(origin.asked, [{ offset: CHUNK, length: PART }]);
});

test('a damaged, shortened or missing file is fetched again and never given out', async () => {
  for (const damage of [
    async (path: string) => {
      await using file = await open(path, 'r+');
      await file.write(Buffer.from([(DATA[5 * PART + 9] ?? 0) ^ 1]), 0, 1, 5 * PART + 9);
    },
    (path: string) => truncate(path, 5 * PART + 100),
    (path: string) => unlink(path),
    (path: string) => writeFile(path, ''),
  ]) {
    const before = await start();
    await check(await before.open({ digest: DIGEST, size: SIZE, origin }), 0, CHUNK);
    await before.close();
    await damage(chunkFile(0));
    origin.asked.length = 0;
    const after = await start();
    await check(await after.open({ digest: DIGEST, size: SIZE, origin }), 0, CHUNK);
    assert.ok(origin.bytes >= PART);
    await after.close();
  }
});

test('an index that is damaged, or of something else, counts for nothing', async () => {
  const before = await start();
  await check(await before.open({ digest: DIGEST, size: SIZE, origin }), 0, CHUNK);
  await before.close();
  await writeFile(join(root, 'stray'), 'x');
  await writeFile(join(root, DIGEST.replace(':', '-'), 'chunk-000099'), 'x');
  await using index = await open(join(root, DIGEST.replace(':', '-'), 'index'), 'r+');
  await index.write(Buffer.from('damage'), 0, 6, 512 + 40);
  origin.asked.length = 0;
  const after = await start();
  assert.equal(after.usage.usedBytes, 0);
  assert.deepEqual(await readdir(root), [DIGEST.replace(':', '-')]);
  assert.deepEqual(await readdir(join(root, DIGEST.replace(':', '-'))), ['index']);
  await check(await after.open({ digest: DIGEST, size: SIZE, origin }), 0, CHUNK);
  assert.equal(origin.bytes, CHUNK);
});

test('a network that comes back in time is not noticed', async () => {
  const blob = await opened();
  let failures = 3;
  origin.before = () => {
    if (failures-- > 0) throw down();
  };
  await check(blob, 0, PART);
  assert.equal(origin.asked.length, 4);
});

test('a network that stays away is an error after the limit, then at once, until it is back', async () => {
  const limit = process.env.AENV_SOAK === '1' ? 30_000 : 500;
  const blob = await opened({ offlineAfterMs: limit });
  origin.before = () => {
    throw down();
  };
  const start = Date.now();
  await assert.rejects(read(blob, 0, 10), { code: 'layer_unavailable', message: /nothing listens/ });
  assert.ok(Date.now() - start >= limit - 10 && Date.now() - start < limit + 3000);
  const asked = origin.asked.length;
  await assert.rejects(read(blob, CHUNK, 10), { code: 'layer_unavailable' });
  assert.ok(origin.asked.length <= asked + 1, 'not tried again and again');
  origin.before = () => {};
  await check(blob, 0, PART);
  await check(blob, CHUNK, PART);
});

test('an origin that says nothing is given up like one that is away', async () => {
  const blob = await opened({ attemptMs: 500 });
  origin.before = (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
  await assert.rejects(read(blob, 0, 10), { code: 'layer_unavailable', message: /did not answer in time/ });
});

test('a registry that does not answer does not stop another', async () => {
  const cache = await start({ offlineAfterMs: 5000 });
  const dead = new FakeOrigin(DATA);
  dead.before = (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
  const other = `sha256:${'0'.repeat(64)}`;
  const hanging = await cache.open({ digest: other, size: 64 * CHUNK, origin: dead });
  const stuck = Array.from({ length: 64 }, (_, at) => read(hanging, at * CHUNK, 10));
  const all = Promise.allSettled(stuck);
  await check(await cache.open({ digest: DIGEST, size: SIZE, origin }), 0, PART);
  assert.equal(dead.mostAtOnce, 8);
  await cache.close();
  for (const result of await all) assert.equal(result.status, 'rejected');
});

test('what a guest waits for comes before what nobody waits for', async () => {
  const cache = await start({ limits: { requests: 2, background: 1 } });
  const idle = await cache.open({ digest: DIGEST, size: SIZE, origin, priority: 'background' });
  const blob = await cache.open({ digest: DIGEST, size: SIZE, origin });
  const background = Promise.all([0, 20, 40, 70, 90].map((part) => check(idle, part * PART, 10)));
  await check(blob, 110 * PART, 10);
  const place = origin.asked.findIndex(({ offset }) => offset === 110 * PART);
  assert.ok(place <= 1, `asked as number ${place}`);
  await background;
});

test('a part that was wanted in passing moves ahead when somebody waits for it', async () => {
  const cache = await start({ limits: { requests: 1, background: 1 } });
  const idle = await cache.open({ digest: DIGEST, size: SIZE, origin, priority: 'background' });
  const blob = await cache.open({ digest: DIGEST, size: SIZE, origin });
  const background = Promise.all([0, 20, 40, 70, 90].map((part) => check(idle, part * PART, 10)));
  await new Promise((resolve) => setImmediate(resolve));
  await check(blob, 90 * PART, 10);
  assert.equal(
    origin.asked.findIndex(({ offset }) => offset === 90 * PART),
    1,
  );
  await background;
});

test('a reader who gives up gets nothing more, and the part is there for the next one', async () => {
  const blob = await opened();
  const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  origin.before = () => {
    asked.resolve();
    return go.promise;
  };
  const cancel = new AbortController();
  const target = Buffer.alloc(10, 7);
  const reading = blob.read(target, 0, cancel.signal);
  await asked.promise;
  cancel.abort(new Error('enough'));
  await assert.rejects(reading, /enough/);
  go.resolve();
  await check(blob, 0, PART);
  assert.ok(target.every((byte) => byte === 7));
  assert.equal(origin.asked.length, 1);
});

test('a blob that is all here has its digest compared, and is not asked for again', async () => {
  const cache = await start();
  const blob = await cache.open({ digest: DIGEST, size: SIZE, origin });
  await check(blob, 30 * PART, PART);
  await completeBlob(blob.blob, new AbortController().signal);
  assert.ok(cache.isVerified(DIGEST));
  assert.equal(origin.bytes, SIZE);
  await cache.close();
  const again = await start();
  assert.ok(again.isVerified(DIGEST));
  await check(await again.open({ digest: DIGEST, size: SIZE, origin }), 0, SIZE);
  assert.equal(origin.bytes, SIZE);
});

test('a blob whose digest is another gives nothing more, and nothing of it is kept', async () => {
  const cache = await start();
  origin.data = Buffer.concat([DATA.subarray(0, -1), Buffer.from([(DATA.at(-1) ?? 0) ^ 1])]);
  const blob = await cache.open({ digest: DIGEST, size: SIZE, origin });
  await check(blob, 0, PART);
  await assert.rejects(completeBlob(blob.blob, new AbortController().signal), {
    code: 'digest_mismatch',
    message: new RegExp(`${DIGEST} has the digest ${digestOf(origin.data)}`),
  });
  await assert.rejects(read(blob, 0, 10), { code: 'layer_corrupt' });
  assert.equal(cache.usage.usedBytes, 0);
  await blob.close();
  origin.data = DATA;
  await check(await cache.open({ digest: DIGEST, size: SIZE, origin }), 0, SIZE);
});

test('sizes and digests that no blob can have are refused', async () => {
  const cache = await start();
  for (const size of [-1, 1.5, Number.NaN, 2 ** 50]) {
    await assert.rejects(cache.open({ digest: DIGEST, size, origin }), { code: 'layer_corrupt' });
  }
  await assert.rejects(cache.open({ digest: 'sha256:../x', size: 1, origin }), { code: 'image_invalid' });
  await cache.open({ digest: DIGEST, size: SIZE, origin });
  await assert.rejects(cache.open({ digest: DIGEST, size: SIZE + 1, origin }), { code: 'layer_corrupt' });
  const empty = await cache.open({ digest: digestOf(Buffer.alloc(0)), size: 0, origin });
  assert.equal((await read(empty, 0, 0)).length, 0);
});

test('a blob that nobody has open can be removed', async () => {
  const cache = await start();
  const blob = await cache.open({ digest: DIGEST, size: SIZE, origin });
  await check(blob, 0, PART);
  assert.equal(await cache.remove(DIGEST), false);
  await blob.close();
  assert.equal(await cache.remove(DIGEST), true);
  assert.deepEqual(await readdir(root), []);
  assert.equal(cache.usage.usedBytes, 0);
});
