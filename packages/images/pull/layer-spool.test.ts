import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { OciLayer } from '../oci/find-image.ts';
import { digestOf } from '../testing/layout.ts';
import { bytesOf } from '../testing/registry-fixture.ts';
import { LayerSpool } from './layer-spool.ts';

let dir = '';
let opened: number[] = [];
let fetched = 0;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-spool-'));
  opened = [];
  fetched = 0;
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const DATA = Array.from({ length: 5 }, (_, at) => randomBytes(100_000 + at));

/** Layers that come in pieces, or fail as told. */
function layers(before: (layer: number, piece: number) => unknown = () => {}): OciLayer[] {
  return DATA.map((data, at) => ({
    digest: digestOf(data),
    diffId: digestOf(data),
    sizeBytes: data.length,
    form: 'tar' as const,
    async *open(signal?: AbortSignal) {
      opened.push(at);
      for (let piece = 0; piece * 30_000 < data.length; piece++) {
        await before(at, piece);
        signal?.throwIfAborted();
        yield data.subarray(piece * 30_000, (piece + 1) * 30_000);
      }
    },
  }));
}

const spool = (sources: OciLayer[], options: { maxBytes?: number; atOnce?: number } = {}) =>
  new LayerSpool(sources, {
    ...{ dir, maxBytes: 10 ** 9, atOnce: 3, ...options },
    onFetched: (bytes) => {
      fetched += bytes;
    },
  });

test('the next layers come while one is being read, and every byte is fetched once', async () => {
  const all = spool(layers());
  const reading = all.layers[0]?.open()[Symbol.asyncIterator]();
  await reading?.next();
  while (opened.length < 5) await delay(5);
  await reading?.return?.();
  for (const [at, layer] of all.layers.entries()) {
    if (at > 0) assert.ok((await bytesOf(layer.open())).equals(DATA[at] ?? Buffer.alloc(0)));
  }
  assert.deepEqual(opened.toSorted(), [0, 1, 2, 3, 4]);
  assert.deepEqual(await readdir(dir), []);
  await all.close();
});

test('layers below the first one that is read are not fetched', async () => {
  const all = spool(layers());
  await bytesOf(all.layers[3]?.open());
  await bytesOf(all.layers[4]?.open());
  assert.deepEqual(opened, [3, 4]);
  assert.equal(fetched, 200_007);
  await all.close();
});

test('no more is fetched at a time, and no more waits on disk, than allowed', async () => {
  let running = 0;
  let most = 0;
  const sources = layers(() => delay(1)).map((layer) => ({
    ...layer,
    async *open(signal?: AbortSignal) {
      most = Math.max(most, ++running);
      try {
        yield* layer.open(signal);
      } finally {
        running--;
      }
    },
  }));
  const all = spool(sources, { atOnce: 2, maxBytes: 150_000 });
  for (const [at, layer] of all.layers.entries()) {
    for await (const _ of layer.open()) assert.ok((await readdir(dir)).length <= 1);
    assert.equal((await readdir(dir)).length <= 1, true, String(at));
  }
  assert.equal(most, 2);
  assert.equal(fetched, 500_010);
  await all.close();
});

test('a layer is read while it is still being fetched, and again from its source later', async () => {
  let go = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const all = spool(layers((layer, piece) => (layer === 1 && piece === 2 ? gate : undefined)));
  await bytesOf(all.layers[0]?.open());
  const reading = all.layers[1]?.open()[Symbol.asyncIterator]();
  assert.equal((await reading?.next())?.done, false);
  go();
  const rest: Uint8Array[] = [];
  for (let next = await reading?.next(); next?.done === false; next = await reading?.next()) rest.push(next.value);
  assert.ok(rest.length > 0);
  assert.ok((await bytesOf(all.layers[1]?.open())).equals(DATA[1] ?? Buffer.alloc(0)));
  await all.close();
});

test('a layer that fails in the background fails for who reads it, and not before', async () => {
  const all = spool(
    layers((layer, piece) => {
      if (layer === 2 && piece === 1) throw new Error('broken');
    }),
  );
  await bytesOf(all.layers[0]?.open());
  await bytesOf(all.layers[1]?.open());
  await assert.rejects(bytesOf(all.layers[2]?.open()), /broken/);
  await all.close();
  assert.deepEqual(await readdir(dir), []);
});

test('closing ends what is being fetched and leaves nothing', async () => {
  const all = spool(layers((layer) => (layer > 0 ? delay(20) : undefined)));
  await bytesOf(all.layers[0]?.open());
  await all.close();
  assert.deepEqual(await readdir(dir), []);
  const cancel = AbortSignal.abort(new Error('enough'));
  const canceled = spool(layers());
  await assert.rejects(bytesOf(canceled.layers[0]?.open(cancel)), /enough/);
  await canceled.close();
  assert.deepEqual(await readdir(dir), []);
});
