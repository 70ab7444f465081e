import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { digestOf } from '../blob/digest.ts';
import { openLayerFile } from '../blob/open-layer-blob.ts';
import { fileLayer, LayerPool } from './stack/pool.ts';
import { openSealedLayer } from './stack/sealed-layer.ts';

/** Folder with a layer that the reference has written: hello-world, converted. It is not part of the project. */
const FOLDER = process.env.AENV_OVERLAYBD_VECTORS;
const LAYER = join(FOLDER ?? '', 'hello-world.overlaybd.tar');
const skip = FOLDER === undefined ? 'AENV_OVERLAYBD_VECTORS does not say where the layer is' : false;

test('a layer that the reference has written decodes exactly', { skip }, async () => {
  const blob = await openLayerFile(LAYER);
  assert.equal(blob.size, 71_528_448);
  assert.equal(await digestOf(blob), 'sha256:39195424aa10572fe002262190877b4306a66be9c62c8f1594141b01dc79c2ea');
  const { header, index } = await openSealedLayer(blob);
  assert.equal(header.indexCount, 768);
  assert.equal(header.indexOffset, 71_512_064);
  assert.equal(header.virtualSize, 64 * 2 ** 30);
  assert.equal(header.uuid, '01bb4fce-3eb1-b56b-05ad-f99504dafd31');
  assert.equal(index.count, 515);
  assert.deepEqual([...index.offsets.subarray(0, 3)], [0, 12_288, 262_144]);
  assert.deepEqual([...index.lengths.subarray(0, 3)], [8448, 256, 72]);
  assert.deepEqual([...index.places.subarray(0, 3)], [8, 8456, 8712]);
  await blob.close();

  const stack = await new LayerPool().openStack([fileLayer(LAYER)]);
  const first = Buffer.alloc(2 ** 20);
  await stack.read(first, 0);
  assert.equal(
    createHash('sha256').update(first).digest('hex'),
    'f1812ab378ea5eefc2eb8fab2a7a46f66d97d3ddc25144d0d7e937946373a166',
  );
  await stack.close();
});
