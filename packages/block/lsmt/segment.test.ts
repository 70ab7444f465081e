import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { emptySegment, readSegment, type Segment, writePadding, writeSegment } from './segment.ts';

/** The definition of the format, in big integers. */
function packed(offset: bigint, length: bigint, place: bigint, zeroed: boolean, tag: bigint): string {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(offset | (length << 50n), 0);
  bytes.writeBigUInt64LE(place | (zeroed ? 1n << 55n : 0n) | (tag << 56n), 8);
  return bytes.toString('hex');
}

function written(...fields: [number, number, number, boolean, number]): string {
  const bytes = new Uint8Array(16);
  writeSegment(new DataView(bytes.buffer), 0, ...fields);
  return Buffer.from(bytes).toString('hex');
}

function read(hex: string): Segment {
  const segment = emptySegment();
  readSegment(new DataView(Uint8Array.from(Buffer.from(hex, 'hex')).buffer), 0, segment);
  return segment;
}

const VECTORS: [[number, number, number, boolean, number], string][] = [
  [[0, 8, 8, false, 0], '00000000000020000800000000000000'],
  [[8, 16, 16, false, 0], '08000000000040001000000000000000'],
  [[12288, 256, 8456, false, 0], '00300000000000040821000000000000'],
  [[528, 7855, 8296, true, 0], '100200000000bc7a6820000000008000'],
];

test('entries have the bytes that the reference writes', () => {
  for (const [fields, hex] of VECTORS) {
    assert.equal(written(...fields), hex);
    const [offset, length, place, zeroed, tag] = fields;
    assert.deepEqual(read(hex), { offset, length, place, zeroed, tag });
  }
  const padding = new Uint8Array(16);
  writePadding(new DataView(padding.buffer), 0);
  assert.equal(Buffer.from(padding).toString('hex'), 'ffffffffffff03000000000000000000');
});

test('the largest entry is read with all its bits', () => {
  const hex = '010000000000fcffffffffffffffffff';
  assert.equal(hex, packed(1n, 16383n, (1n << 55n) - 1n, true, 255n));
  const { place, ...rest } = read(hex);
  assert.deepEqual(rest, { offset: 1, length: 16383, zeroed: true, tag: 255 });
  assert.equal(place, Number((1n << 55n) - 1n));
});

test('every entry of a size that a file can have is written and read as the format defines it', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 2 ** 50 - 1 }),
      fc.nat({ max: 16383 }),
      fc.nat({ max: Number.MAX_SAFE_INTEGER }),
      fc.boolean(),
      fc.nat({ max: 255 }),
      (offset, length, place, zeroed, tag) => {
        const hex = packed(BigInt(offset), BigInt(length), BigInt(place), zeroed, BigInt(tag));
        assert.equal(written(offset, length, place, zeroed, tag), hex);
        assert.deepEqual(read(hex), { offset, length, place, zeroed, tag });
      },
    ),
  );
});
