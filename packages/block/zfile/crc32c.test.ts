import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { rawCrc32c } from './crc32c.ts';

test('the register is neither inverted at the start nor at the end', () => {
  const digits = Buffer.from('123456789');
  assert.equal(rawCrc32c(digits).toString(16), '58e3fa20');
  assert.equal(rawCrc32c(digits, 100_007).toString(16), '3c9bd4e0');
  assert.equal(rawCrc32c(Buffer.alloc(4096)), 0);
  assert.equal(rawCrc32c(Buffer.alloc(4096), 100_007).toString(16), '18746ccd');
  // The usual form of CRC-32C, from the same function.
  assert.equal((~rawCrc32c(digits, 0xffff_ffff) >>> 0).toString(16), 'e3069283');
});

test('eight bytes a step give the same as bit by bit, and parts can follow each other', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(0xffff_ffff), fc.nat(100), (bytes, seed, cut) => {
      let crc = seed;
      for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0);
      }
      assert.equal(rawCrc32c(bytes, seed), crc >>> 0);
      assert.equal(rawCrc32c(bytes.subarray(cut), rawCrc32c(bytes.subarray(0, cut), seed)), crc >>> 0);
    }),
  );
});
