import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { pieces } from '../testing/tar.ts';
import { decompress } from './decompress.ts';

const data = Buffer.concat([randomBytes(100_000), Buffer.alloc(200_000, 'a')]);

async function all(stored: Buffer, piece: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of decompress(pieces(stored, piece))) chunks.push(chunk);
  return Buffer.concat(chunks);
}

for (const piece of [1000, 10_000_000]) {
  test(`plain, gzip and zstd are told by their first bytes (pieces of ${piece})`, async () => {
    for (const stored of [data, gzipSync(data), zstdCompressSync(data)]) {
      assert.ok((await all(stored, piece)).equals(data));
    }
    assert.equal((await all(Buffer.alloc(0), piece)).length, 0);
  });

  test(`several members are one stream (pieces of ${piece})`, async () => {
    const twice = Buffer.concat([data, data]);
    for (const stored of [gzipSync(data), zstdCompressSync(data)]) {
      assert.ok((await all(Buffer.concat([stored, stored]), piece)).equals(twice));
    }
  });

  test(`garbage at the end and a missing end are refused (pieces of ${piece})`, async () => {
    for (const stored of [gzipSync(data), zstdCompressSync(data)]) {
      for (const garbage of [Buffer.from('hello'), Buffer.alloc(3), Buffer.alloc(100_000, 7)]) {
        await assert.rejects(all(Buffer.concat([stored, garbage]), piece), { code: 'image_invalid' });
      }
      await assert.rejects(all(stored.subarray(0, stored.length - 20), piece), { code: 'image_invalid' });
    }
  });
}

test('a fault of the source comes through as it is', async () => {
  const fault = new Error('disk gone');
  async function* broken() {
    yield gzipSync(data).subarray(0, 5000);
    throw fault;
  }
  await assert.rejects(async () => {
    for await (const _ of decompress(broken()));
  }, fault);
});

test('a reader that stops early ends the source', { timeout: 20_000 }, async () => {
  const ended = Promise.withResolvers<void>();
  async function* source() {
    try {
      for (;;) yield gzipSync(randomBytes(100_000));
    } finally {
      ended.resolve();
    }
  }
  for await (const _ of decompress(source())) break;
  await ended.promise;
});
