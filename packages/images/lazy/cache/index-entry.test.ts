import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEntry, decodeHeader, ENTRY, emptyParts, encodeEntry, encodeHeader } from './index-entry.ts';

const HEADER = { digest: `sha256:${'0a'.repeat(32)}`, size: 12_345_678_901, verified: true };

test('headers and entries come back as they were', () => {
  assert.deepEqual(decodeHeader(encodeHeader(HEADER)), HEADER);
  const parts = emptyParts();
  for (const part of [0, 7, 8, 63]) {
    parts.known[part] = 1;
    parts.crcs[part] = 0xffff_ff00 + part;
  }
  parts.present[7] = parts.present[63] = 1;
  assert.deepEqual(decodeEntry(encodeEntry(parts)), parts);
});

test('with a bit changed anywhere nothing is there', () => {
  for (const [block, decode] of [
    [encodeHeader(HEADER), decodeHeader],
    [encodeEntry({ ...emptyParts(), known: new Uint8Array(64).fill(1) }), decodeEntry],
  ] as const) {
    for (let at = 0; at < ENTRY; at += 3) {
      const damaged = Buffer.from(block);
      damaged[at] = (damaged[at] ?? 0) ^ 0x10;
      assert.equal(decode(damaged), undefined, String(at));
    }
    assert.equal(decode(Buffer.alloc(ENTRY)), undefined);
    assert.equal(decode(block.subarray(1)), undefined);
  }
});

test('a part that is there without its checksum does not count', () => {
  const parts = { ...emptyParts(), present: new Uint8Array(64).fill(1) };
  assert.deepEqual(decodeEntry(encodeEntry(parts))?.present, new Uint8Array(64));
});
