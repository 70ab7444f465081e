import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestImage } from '../testing/ext4.ts';

const MIB = 2 ** 20;

// Around the size of a group (128 MiB), of a block of descriptors (16 GiB), and the limits; e2fsck takes a while for the upper.
const SIZES = [16 * MIB, 128 * MIB, 128 * MIB + 4096, 300 * MIB - 4096, 16_384 * MIB + 4096];
if (process.env.AENV_SOAK === '1') SIZES.push(2 ** 41);
for (const size of SIZES) {
  test(`a disk of ${size / MIB} MiB is clean, new and with content`, async () => {
    const image = new TestImage(size);
    await image.check();
    await image.apply([[{ name: 'a/b', data: 'x'.repeat(10_000) }]]);
    await image.check();
    assert.ok(image.tree.blocks.free * 4096 > size * 0.6);
  });
}

test('what is not used takes no space', async () => {
  const image = new TestImage(10 * 2 ** 30);
  await image.check();
  assert.ok(image.disk.blocks.size < 30, `${image.disk.blocks.size} blocks`);
});
