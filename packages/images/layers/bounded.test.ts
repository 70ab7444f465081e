import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pieces } from '../testing/tar.ts';
import { bounded } from './bounded.ts';
import { decompress } from './decompress.ts';

test('a layer may grow in proportion, and by a fixed amount, but no more', async () => {
  const packed = gzipSync(Buffer.alloc(4 * 2 ** 20));
  const read = async (free: number, ratio: number) => {
    let bytes = 0;
    const unpacked = decompress(pieces(packed));
    for await (const chunk of bounded(unpacked, packed.length, { free, ratio })) bytes += chunk.length;
    return bytes;
  };
  assert.equal(await read(4 * 2 ** 20, 0), 4 * 2 ** 20);
  assert.equal(await read(0, 1100), 4 * 2 ** 20);
  await assert.rejects(read(2 ** 20, 10), { code: 'image_invalid', message: /unpacks to more than/ });
});
