import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { encodeName, readName, sameName } from './name.ts';

const label = fc.uint8Array({ minLength: 1, maxLength: 63 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const labels = fc
  .array(label, { maxLength: 20 })
  .filter((list) => list.reduce((size, one) => size + 1 + one.length, 1) <= 255);

test('a name is read as it was written, whatever bytes it has', () => {
  fc.assert(
    fc.property(labels, fc.nat({ max: 30 }), (list, before) => {
      const bytes = Buffer.concat([Buffer.alloc(before), encodeName({ labels: list })]);
      assert.deepEqual(readName(bytes, before, 'refused'), { labels: list, end: bytes.length });
    }),
  );
});

test('a pointer continues the name at an earlier place', () => {
  const bytes = Buffer.concat([
    encodeName({ labels: ['example', 'com'] }),
    Buffer.of(3),
    Buffer.from('www'),
    Buffer.of(0xc0, 0),
  ]);
  assert.deepEqual(readName(bytes, 13, 'allowed'), { labels: ['www', 'example', 'com'], end: bytes.length });
  assert.equal(readName(bytes, 13, 'refused'), undefined);
});

test('pointers to themselves, forwards, or in a circle are refused', () => {
  assert.equal(readName(Buffer.of(0xc0, 0), 0, 'allowed'), undefined);
  assert.equal(readName(Buffer.of(0xc0, 2, 0xc0, 0), 0, 'allowed'), undefined);
  assert.equal(readName(Buffer.of(0xc0, 2, 0xc0, 0), 2, 'allowed'), undefined);
  // "a", then back to "a".
  assert.equal(readName(Buffer.of(1, 0x61, 0xc0, 0), 0, 'allowed'), undefined);
});

test('names that are cut off, too long, or use reserved label types are refused', () => {
  assert.equal(readName(Buffer.of(), 0, 'allowed'), undefined);
  assert.equal(readName(Buffer.of(3, 0x61), 0, 'allowed'), undefined);
  assert.equal(readName(Buffer.of(1, 0x61), 0, 'allowed'), undefined);
  assert.equal(readName(Buffer.of(0xc0), 0, 'allowed'), undefined);
  assert.equal(readName(Buffer.concat([Buffer.of(0x40), Buffer.alloc(80)]), 0, 'allowed'), undefined);
  const long = encodeName({ labels: Array.from({ length: 128 }, () => 'a') });
  assert.equal(readName(long, 0, 'allowed'), undefined);
  assert.ok(readName(encodeName({ labels: Array.from({ length: 127 }, () => 'a') }), 0, 'allowed'));
});

test('arbitrary bytes are read or refused, never more', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat({ max: 650 }), (bytes, offset) => {
      const name = readName(bytes, offset, 'allowed');
      if (name !== undefined) assert.ok(name.end <= bytes.length && name.end > offset);
    }),
    { numRuns: 2_000 },
  );
});

test('case does not matter for ASCII letters only', () => {
  assert.ok(sameName({ labels: ['WwW', 'x'] }, { labels: ['wWw', 'X'] }));
  assert.ok(!sameName({ labels: ['a', 'b'] }, { labels: ['a.b'] }));
  assert.ok(!sameName({ labels: ['\u00c4'] }, { labels: ['\u00e4'] }));
});
