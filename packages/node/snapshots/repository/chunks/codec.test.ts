import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeChunk, encodeChunk } from './codec.ts';

test('chunks that can be packed and those that cannot come back as they were', async () => {
  for (const bytes of [Buffer.alloc(100_000, 'text '), randomBytes(100_000), Buffer.alloc(1)]) {
    const encoded = await encodeChunk(bytes);
    assert.ok(encoded.length <= bytes.length + 12);
    assert.deepEqual(Buffer.from((await decodeChunk(encoded, bytes.length)) ?? []), bytes);
  }
});

test('a chunk with any byte changed, cut off or of another size is none', async () => {
  for (const bytes of [Buffer.alloc(3000, 'text '), randomBytes(300)]) {
    const encoded = await encodeChunk(bytes);
    for (let at = 0; at < encoded.length; at++) {
      const bad = Buffer.from(encoded);
      bad[at] = (bad[at] ?? 0) ^ 0x10;
      assert.equal(await decodeChunk(bad, bytes.length), undefined, `byte ${at}`);
    }
    for (const end of [0, 4, 11, encoded.length - 1]) {
      assert.equal(await decodeChunk(encoded.subarray(0, end), bytes.length), undefined);
    }
    assert.equal(await decodeChunk(encoded, bytes.length - 1), undefined);
    assert.equal(await decodeChunk(encoded, bytes.length + 1), undefined);
  }
});

test('whatever the bytes, decoding them ends and gives nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      assert.equal(await decodeChunk(Buffer.from(bytes), 4096), undefined);
    }),
  );
});
