import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isCode } from '../../testing/is-code.ts';
import { fileLayer, LayerPool } from '../stack/pool.ts';
import { commitLayers } from './commit.ts';
import { LayerWriter } from './layer-writer.ts';

const SIZE = 16 * 2 ** 20;
const UUID = '11111111-2222-4333-8444-555555555555';
let folder = '';
let scattered = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'block-commit-'));
  scattered = join(folder, 'scattered');
  const writer = await LayerWriter.create({ path: scattered, uuid: UUID, virtualSize: SIZE });
  // 1024 single sectors with holes of 7 sectors, then 8 with holes of half a MiB.
  for (let i = 0; i < 1024; i++) await writer.append(Buffer.alloc(512, 1 + (i % 250)), i * 4096);
  for (let i = 8; i < 16; i++) await writer.append(Buffer.alloc(512, 'far'), i * 2 ** 20);
  writer.zero(SIZE / 2 - 2 ** 20, 2 ** 20);
  await writer.finish();
});
after(() => rm(folder, { recursive: true, force: true }));

async function contentOf(path: string): Promise<Buffer> {
  const stack = await new LayerPool().openStack([fileLayer(path)]);
  const bytes = Buffer.alloc(SIZE);
  await stack.read(bytes, 0);
  await stack.close();
  return bytes;
}

test('a bottom layer with too many pieces gets its small holes filled, and no more than needed', async () => {
  const path = join(folder, 'filled');
  const written = await commitLayers(new LayerPool(), {
    layers: [fileLayer(scattered)],
    isBottom: true,
    path,
    uuid: UUID,
    maxSegments: 256,
  });
  assert.equal(written.segments, 9);
  assert.equal(written.dataBytes, 1023 * 4096 + 512 + 8 * 512);
  assert.ok((await contentOf(path)).equals(await contentOf(scattered)));
});

test('a layer that others lie below is refused instead, and leaves nothing', async () => {
  const path = join(folder, 'refused');
  const options = { layers: [fileLayer(scattered)], isBottom: false, path, uuid: UUID, maxSegments: 256 };
  await assert.rejects(commitLayers(new LayerPool(), options), isCode('layer_too_scattered'));
  for (const name of [path, `${path}.part`]) await assert.rejects(stat(name), { code: 'ENOENT' });
});

test('without a bound nothing is filled, and the same layers give the same bytes', async () => {
  const [one, two] = await Promise.all(
    ['one', 'two'].map((name) =>
      commitLayers(new LayerPool(), {
        layers: [fileLayer(scattered)],
        isBottom: true,
        path: join(folder, name),
        uuid: UUID,
      }),
    ),
  );
  assert.ok(one !== undefined && two !== undefined);
  assert.equal(one.segments, 1032);
  assert.equal(one.digest, two.digest);
  assert.ok((await readFile(one.path)).equals(await readFile(two.path)));
});

test('data that is appended again hides what was appended before', async () => {
  const path = join(folder, 'again');
  const writer = await LayerWriter.create({ path, uuid: UUID, virtualSize: SIZE });
  await writer.append(Buffer.alloc(8192, 'a'), 8192);
  await writer.append(Buffer.alloc(4096, 'b'), 0);
  await writer.append(Buffer.alloc(1024, 'c'), 9216);
  writer.zero(12_288, 4096);
  await assert.rejects(writer.append(Buffer.alloc(512), SIZE), RangeError);
  await writer.finish();
  const bytes = await contentOf(path);
  const expected = Buffer.alloc(SIZE);
  expected.fill('b', 0, 4096).fill('a', 8192, 12_288).fill('c', 9216, 10_240);
  assert.ok(bytes.equals(expected));
});
