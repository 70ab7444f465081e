import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { BlobSource } from '../../blob/contract.ts';
import { openFile } from '../../blob/file-source.ts';
import { isCode } from '../../testing/is-code.ts';
import { commitLayers } from '../commit/commit.ts';
import { LayerWriter } from '../commit/layer-writer.ts';
import type { FrozenLayer, WritableLayer } from '../contract.ts';
import { createWritableLayer } from '../writable/open.ts';
import { fileLayer, LayerPool, type LayerRef } from './pool.ts';

const SIZE = 2 ** 20;
let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'block-stack-'));
});
after(() => rm(folder, { recursive: true, force: true }));

function uuid(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

async function layer(n: number, parent: number, parts: readonly [text: string, offset: number][]): Promise<string> {
  const path = join(folder, `layer-${n}-${parent}`);
  const writer = await LayerWriter.create({
    path,
    uuid: uuid(n),
    virtualSize: SIZE,
    ...(parent > 0 ? { parentUuid: uuid(parent) } : {}),
  });
  for (const [text, offset] of parts) await writer.append(Buffer.alloc(4096, text), offset);
  await writer.finish();
  return path;
}

/** A layer whose bytes are never at hand, and that counts who has it open. */
function remote(path: string, state: { opened: number; closed: number; gate?: Promise<void> }): LayerRef {
  return {
    key: `remote ${path}`,
    async open() {
      state.opened++;
      await state.gate;
      const file = await openFile(path);
      const source: BlobSource = {
        size: file.size,
        readSync: () => false,
        read: (target, offset, signal) => file.read(target, offset, signal),
        async close() {
          state.closed++;
          await file.close();
        },
      };
      return source;
    },
  };
}

test('what is not at hand makes the synchronous read give up, and comes with the other one', async () => {
  const bottom = await layer(1, 0, [
    ['a', 0],
    ['b', 8192],
  ]);
  const top = await layer(2, 1, [['c', 8192]]);
  const state = { opened: 0, closed: 0 };
  const stack = await new LayerPool().openStack([remote(bottom, state), fileLayer(top)]);
  const target = Buffer.alloc(16_384, 'x');
  assert.equal(stack.readSync(target, 0), false);
  await stack.read(target, 0);
  const expected = Buffer.concat([
    Buffer.alloc(4096, 'a'),
    Buffer.alloc(4096),
    Buffer.alloc(4096, 'c'),
    Buffer.alloc(4096),
  ]);
  assert.ok(target.equals(expected));
  const warm = Buffer.alloc(4096);
  assert.equal(stack.readSync(warm, 8192), true, 'a range of a file that was read before is at hand');
  assert.equal(stack.readSync(warm, 4096), true, 'so is a hole');
  assert.ok(warm.equals(Buffer.alloc(4096)));
  await stack.close();
});

test('stacks of the same layers share them, and the last one closes them', async () => {
  const path = await layer(3, 0, [['a', 0]]);
  const state = { opened: 0, closed: 0 };
  const pool = new LayerPool();
  const [one, two] = await Promise.all([pool.openStack([remote(path, state)]), pool.openStack([remote(path, state)])]);
  assert.deepEqual(state, { opened: 1, closed: 0 });
  await one.close();
  await one.close();
  assert.equal(state.closed, 0);
  await two.close();
  assert.equal(state.closed, 1);
  const three = await pool.openStack([remote(path, state)]);
  assert.equal(state.opened, 2);
  await three.close();
});

test('who stops waiting does not take the layer from the others', async () => {
  const path = await layer(4, 0, [['a', 0]]);
  const gate = Promise.withResolvers<void>();
  const state = { opened: 0, closed: 0, gate: gate.promise };
  const pool = new LayerPool();
  const abort = new AbortController();
  const impatient = pool.openStack([remote(path, state)], abort.signal);
  const patient = pool.openStack([remote(path, state)]);
  abort.abort(new Error('enough'));
  await assert.rejects(impatient, /enough/);
  gate.resolve();
  const stack = await patient;
  assert.equal(state.opened, 1);
  await stack.close();
  assert.equal(state.closed, 1);
});

test('a layer stands only on the one that it was made on', async () => {
  const a = await layer(5, 0, [['a', 0]]);
  const b = await layer(6, 0, [['b', 0]]);
  const onA = await layer(7, 5, [['c', 0]]);
  const pool = new LayerPool();
  await (await pool.openStack([a, onA].map(fileLayer))).close();
  await assert.rejects(pool.openStack([b, onA].map(fileLayer)), isCode('layer_corrupt'));
  await assert.rejects(pool.openStack([fileLayer(join(folder, 'missing'))]), isCode('layer_corrupt'));
  // What failed is not remembered.
  await (await pool.openStack([a, onA].map(fileLayer))).close();
});

test('no layer at all reads as zeros', async () => {
  const stack = await new LayerPool().openStack([]);
  const target = Buffer.alloc(4096, 'x');
  assert.equal(stack.readSync(target, 2 ** 30), true);
  assert.ok(target.equals(Buffer.alloc(4096)));
  assert.deepEqual([...stack.dataRanges(0, 2 ** 30)], []);
  await stack.close();
});

test('neighbouring data is one range, whatever layers it comes from', async () => {
  const bottom = await layer(8, 0, [
    ['a', 0],
    ['b', 4096],
    ['z', 65_536],
  ]);
  const top = await layer(9, 8, [['c', 8192]]);
  const stack = await new LayerPool().openStack([bottom, top].map(fileLayer));
  assert.deepEqual(
    [...stack.dataRanges(512, SIZE - 512)],
    [
      { offset: 512, length: 11_776 },
      { offset: 65_536, length: 4096 },
    ],
  );
  await stack.close();
});

test('layers that were frozen a moment ago are read at once, over each other and over what is not at hand', async () => {
  const bottom = await layer(20, 0, [
    ['a', 0],
    ['b', 4096],
    ['c', 8192],
  ]);
  let stack = await new LayerPool().openStack([remote(bottom, { opened: 0, closed: 0 })]);
  const frozen: FrozenLayer[] = [];
  const freeze = async (n: number, change: (upper: WritableLayer) => void) => {
    const upper = await createWritableLayer({
      folder: join(folder, `upper-${n}`),
      pendingPath: join(folder, `pending-${n}`),
      uuid: uuid(n),
      virtualSize: SIZE,
    });
    change(upper);
    const before = stack;
    frozen.push(upper.freeze());
    stack = before.over(frozen.at(-1) ?? assert.fail());
    await before.close();
  };
  await freeze(21, (upper) => {
    upper.zero(4096, 8192);
    upper.write(Buffer.alloc(4096, 'd'), 16_384);
  });
  await freeze(22, (upper) => {
    upper.write(Buffer.alloc(512, 'e'), 8192);
    upper.zero(16_384, 512);
  });
  const expected = Buffer.alloc(24_576);
  expected.fill('a', 0, 4096).fill('e', 8192, 8704).fill('d', 16_896, 20_480);
  const ranges = [
    { offset: 0, length: 4096 },
    { offset: 8192, length: 512 },
    { offset: 16_896, length: 3584 },
  ];
  const check = async (when: string) => {
    assert.equal(stack.readSync(Buffer.alloc(4096), 0), false, 'the lowest layer is not at hand');
    const upper = Buffer.alloc(24_576 - 4096, 'x');
    assert.equal(stack.readSync(upper, 4096), true);
    assert.ok(upper.equals(expected.subarray(4096)), when);
    const all = Buffer.alloc(24_576, 'x');
    await stack.read(all, 0);
    assert.ok(all.equals(expected), when);
    assert.deepEqual([...stack.dataRanges(0, SIZE)], ranges, when);
  };
  await check('from the maps');
  await Promise.all(frozen.map((layer) => layer.durable));
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  await check('merged');
  await Promise.all(frozen.map((layer) => layer.close()));
  await check('by the use of the stack alone');
  await stack.close();
});

test('a commit that fails or is stopped leaves nothing behind', async () => {
  const path = await layer(10, 0, [['a', 0]]);
  const before = (await readdir(folder)).sort();
  const abort = new AbortController();
  abort.abort(new Error('stop'));
  const options = { layers: [fileLayer(path)], isBottom: true, path: join(folder, 'out'), uuid: uuid(11) };
  await assert.rejects(commitLayers(new LayerPool(), options, abort.signal), /stop/);
  const broken: LayerRef = {
    key: 'broken',
    async open() {
      const file = await openFile(path);
      return {
        ...file,
        size: file.size,
        readSync: () => false,
        close: () => file.close(),
        async read(target, offset) {
          if (offset === 4096) throw new Error('gone');
          await file.read(target, offset);
        },
      };
    },
  };
  await assert.rejects(commitLayers(new LayerPool(), { ...options, layers: [broken] }), /gone/);
  assert.deepEqual((await readdir(folder)).sort(), before);
});
