import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { LayerPool } from '../../layers/stack/pool.ts';
import { createWritableLayer } from '../../layers/writable/open.ts';
import { layerPaths } from '../../layers/writable/paths.ts';
import { blockdFolders, layerFolder } from '../layout.ts';
import type { DiskLayer } from '../records/schema.ts';
import { frozenMark, LayerOpener } from './layer-opener.ts';

// What the files are at each moment at which a daemon may die around a swap, and what the next one makes of them.
const SIZE = 1 << 20;
const [first, second] = [randomUUID(), randomUUID()];

let root = '';
let opener: LayerOpener;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'aenv-crash-'));
  const folders = blockdFolders(root, join(root, 'run'));
  await mkdir(folders.pending, { recursive: true });
  const noRemote = () => assert.fail('no layer is remote');
  opener = new LayerOpener(folders, new LayerPool(), noRemote);
});
afterEach(() => rm(root, { recursive: true, force: true }));

const folder = (layer: string) => layerFolder(blockdFolders(root, join(root, 'run')), layer);

/** A layer whose first sector has this value, and nothing if there is none. */
async function layer(uuid: string, value?: number, options: { readonly sealed?: boolean } = {}): Promise<void> {
  const made = await createWritableLayer({ ...opener.place(uuid), uuid, virtualSize: SIZE });
  if (value !== undefined) made.write(Buffer.alloc(512, value), 0);
  if (options.sealed !== true) return made.close();
  const done = made.freeze();
  await done.durable;
  await done.close();
}

async function open(uppers: readonly string[], layers: readonly DiskLayer[] = []) {
  const opened = await opener.open({ disk: 'd', sizeBytes: SIZE, durability: 'relaxed', layers, uppers });
  const sector = Buffer.alloc(512);
  await opened.volume.read(sector, 0);
  opened.volume.write(Buffer.alloc(512, 99), 512);
  const written = opened.volume.upperUuid;
  // Whatever a crash kept from being sealed is on the disk when this is answered.
  await opened.volume.flush('strict');
  await opened.volume.close();
  await opened.prepared?.close();
  return { value: sector[0], written, layers: opened.layers, uppers: opened.uppers };
}

const isSealed = (layer: string) => existsSync(layerPaths(folder(layer)).sealed);
const own = (layer: string) => ({ kind: 'own', layer }) as const;
const swapped = { written: second, layers: [own(first)], uppers: [second] };

test('prepared and not swapped: the first upper is written on, and the second one waits', async () => {
  await layer(first, 1);
  await layer(second);
  const found = await open([first, second]);
  assert.deepEqual(found, { value: 1, written: first, layers: [], uppers: [first, second] });
  assert.ok(!isSealed(first));
});

test('swapped, and nothing else: the mark tells, and the first upper is sealed now', async () => {
  await layer(first, 1);
  await layer(second);
  await writeFile(frozenMark(folder(first)), '');
  assert.deepEqual(await open([first, second]), { value: 1, ...swapped });
  assert.ok(isSealed(first));
});

test('swapped and written, the mark lost in a power cut: what was written tells', async () => {
  await layer(first, 1);
  await layer(second, 2);
  assert.deepEqual(await open([first, second]), { value: 2, ...swapped });
});

test('swapped and sealed, the mark lost: the sealed file tells', async () => {
  await layer(first, 1, { sealed: true });
  await layer(second);
  assert.deepEqual(await open([first, second]), { value: 1, ...swapped });
});

test('a layer that was not sealed below one that was: it is sealed first', async () => {
  await layer(first, 1);
  await layer(second, undefined, { sealed: true });
  const upper = randomUUID();
  await layer(upper);
  const found = await open([upper], [own(first), own(second)]);
  assert.equal(found.value, 1);
  assert.ok(isSealed(first));
});

test('a layer that is being sealed is put into another stack as it is, and not frozen a second time', async () => {
  await layer(first, 1);
  await layer(second);
  const spec = { disk: 'd', sizeBytes: SIZE, durability: 'relaxed', layers: [], uppers: [first, second] } as const;
  const { volume, prepared } = await opener.open(spec);
  assert.ok(prepared !== undefined);
  await volume.swap(prepared).close();
  assert.ok(!isSealed(first));
  const { stack, frozen } = await opener.openStack([own(first)], (uuid) => volume.unsealed(uuid));
  assert.deepEqual(frozen, []);
  volume.replaceStack(stack);
  await volume.sealed(first);
  assert.ok(isSealed(first));
  const sector = Buffer.alloc(512);
  await volume.read(sector, 0);
  assert.equal(sector[0], 1);
  await volume.close();
});

test('a layer that is gone is told by name, and nothing stays open', async () => {
  const descriptors = async () => (await readdir('/proc/self/fd')).length;
  await layer(second);
  const before = await descriptors();
  await assert.rejects(open([second], [own(first)]), { code: 'layer_corrupt' });
  await assert.rejects(open([first]), { code: 'layer_corrupt' });
  await assert.rejects(open([first, second]), { code: 'layer_corrupt' });
  assert.equal(await descriptors(), before);
});
