import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { damaged, randomOf } from '../testing/fuzz.ts';
import { lz4Decode } from './lz4-decode.ts';
import { Lz4Encoder, lz4Bound } from './lz4-encode.ts';

/** Bytes that repeat themselves here and there, as data does. */
const anyBlock = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 9 }), fc.nat(900)).map(([part, times]) => {
        return Uint8Array.from({ length: part.length * times }, (_, i) => part[i % part.length] ?? 0);
      }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => Buffer.concat(parts).subarray(0, 65_536));

test('what one encoder makes of block after block decodes to the same bytes, and not to another length', () => {
  const encoder = new Lz4Encoder();
  fc.assert(
    fc.property(anyBlock, (block) => {
      const stored = encoder.encode(block).slice();
      assert.ok(stored.length <= lz4Bound(block.length));
      const target = Buffer.alloc(block.length);
      assert.equal(lz4Decode(stored, target), true);
      assert.ok(target.equals(block));
      assert.equal(lz4Decode(stored, Buffer.alloc(block.length + 1)), false);
      if (block.length > 0) assert.equal(lz4Decode(stored, Buffer.alloc(block.length - 1)), false);
    }),
  );
});

test('repetition is packed, noise grows by little', () => {
  const encoder = new Lz4Encoder();
  assert.ok(encoder.encode(Buffer.alloc(65_536)).length < 300);
  assert.ok(encoder.encode(Buffer.from('0123456789abcdef'.repeat(256))).length < 60);
  const noise = Buffer.from(Uint8Array.from({ length: 4096 }, (_, i) => (Math.imul(i + 1, 0x9e37_79b1) >>> 13) & 255));
  assert.ok(encoder.encode(noise).length <= 4114);
});

test('blocks that lie about lengths and distances are refused', () => {
  const refused: Record<string, number[]> = {
    nothing: [],
    'literals beyond the end': [0x50, 1, 2],
    'a length that never ends': [0xf0, 255, 255],
    'a match before the start': [0x10, 1, 2, 0, 0x00],
    'a distance of 0': [0x10, 1, 0, 0, 0x00],
    'half a distance': [0x10, 1, 1],
    'a match beyond the end of the target': [0x1f, 1, 1, 0, 255, 255, 255, 255, 0, 0x00],
    'no literals at the end': [0x10, 1, 1, 0],
  };
  for (const [name, bytes] of Object.entries(refused)) {
    assert.equal(lz4Decode(Uint8Array.from(bytes), new Uint8Array(16)), false, name);
  }
});

test('damaged blocks are decoded or refused, and nothing outside of the target is written', () => {
  const encoder = new Lz4Encoder();
  const stored = Buffer.from(encoder.encode(Buffer.from('0123456789abcdef and then something else, '.repeat(90))));
  const room = Buffer.alloc(4096 + 200, 0xee);
  let refused = 0;
  const rounds = process.env.AENV_SOAK === '1' ? 5_000_000 : 20_000;
  for (let seed = 1; seed <= rounds; seed++) {
    if (!lz4Decode(damaged(stored, randomOf(seed)), room.subarray(100, 100 + 3780))) refused++;
  }
  assert.ok(refused > rounds / 2);
  assert.ok(room.subarray(0, 100).every((byte) => byte === 0xee));
  assert.ok(room.subarray(3880).every((byte) => byte === 0xee));
});
