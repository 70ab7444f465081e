import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { decodeHeader, encodeHeader } from '../lsmt/header.ts';
import { commitLayers } from './commit/commit.ts';
import { fileLayer, LayerPool } from './stack/pool.ts';
import { createWritableLayer } from './writable/open.ts';

const UUID = '11111111-2222-3333-4444-555555555555';
const GIB = 2 ** 30;

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'block-vectors-'));
});
after(() => rm(folder, { recursive: true, force: true }));

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

test('headers of a writable layer have the bytes of the reference', () => {
  const common = { uuid: UUID, virtualSize: GIB };
  assert.equal(sha256(encodeHeader(common)), 'd3553d2be3732985360c38b2b44d8e3384a74903df8adbdc48aed65f46ddaff4');
  assert.equal(
    sha256(encodeHeader({ ...common, isDataFile: false, indexOffset: 4096 })),
    'efdb99a398d00cb7ba2f93c516077a0c4f1f96862e7632e05ce1dcee979aa791',
  );
});

test('data, index, sealed and committed file have the bytes of the reference, and read as what was written', async () => {
  const layer = await createWritableLayer({
    folder: join(folder, 'rw'),
    pendingPath: join(folder, 'pending'),
    uuid: UUID,
    virtualSize: GIB,
  });
  layer.write(Buffer.alloc(4096, 'A'), 0);
  layer.write(Buffer.alloc(4096, 'B'), 8192);
  layer.write(Buffer.alloc(8192, 'C'), 0);
  layer.zero(8192, 4096);
  assert.deepEqual(layer.usage, { total: 20480, live: 8192 });
  await layer.flush('strict');

  const data = await readFile(join(folder, 'rw/writable_data'));
  const index = await readFile(join(folder, 'rw/writable_index'));
  assert.equal(data.length, 20480);
  assert.equal(sha256(data), '5cf783b5009707db1f0d4d0c00479750eba8ccae2a16f7e15975881d3979d6c1');
  assert.equal(index.length, 4160);
  assert.equal(
    index
      .subarray(4096)
      .toString('hex')
      .replace(/.{32}(?=.)/g, '$& '),
    '00000000000020000800000000000000 10000000000020001000000000000000 ' +
      '00000000000040001800000000000000 10000000000020002800000000008000',
  );
  assert.equal(sha256(index), '812d5f7d87733c854d355913dd3f8025f18c71bf7ae2c595eea397785c5b9d2d');

  const frozen = layer.freeze();
  const { path, sizeBytes } = await frozen.durable;
  await frozen.close();
  const sealed = await readFile(path);
  assert.equal(sealed.length, 25088);
  assert.equal(sizeBytes, 25088);
  assert.equal(sha256(sealed), 'c41ad738b04cd0aa5a1f4a53b7dae54030d6f5fcd44553cac5826301dc2426b0');

  const stack = await new LayerPool().openStack([fileLayer(path)]);
  const bytes = Buffer.alloc(16384, 'x');
  if (!stack.readSync(bytes, 0)) await stack.read(bytes, 0);
  assert.deepEqual(bytes, Buffer.concat([Buffer.alloc(8192, 'C'), Buffer.alloc(8192)]));
  assert.equal(stack.virtualSize, GIB);
  assert.deepEqual([...stack.dataRanges(0, GIB)], [{ offset: 0, length: 8192 }]);
  await stack.close();

  const committed = await commitLayers(new LayerPool(), {
    layers: [fileLayer(path)],
    isBottom: false,
    path: join(folder, 'committed'),
    uuid: UUID,
  });
  assert.equal(committed.sizeBytes, 20480);
  assert.equal(committed.digest, 'sha256:a1c657091762bb97a3355b685ec9114c5ae54608e5214413ca4e2d724e9640e9');
  assert.equal(`sha256:${sha256(await readFile(committed.path))}`, committed.digest);
  const header = decodeHeader((await readFile(committed.path)).subarray(-4096));
  assert.equal(header.indexOffset, 12288);
  assert.equal(header.indexCount, 256);
});
