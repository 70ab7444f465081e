import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LineSplitter } from './line-splitter.ts';

test('lines come out the same however the stream is cut', () => {
  const line = fc.string({ minLength: 1, maxLength: 20 }).filter((s) => !s.includes('\n') && s.trim() === s);
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat(40)), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((l) => `${l}\r\n`).join(''));
      const splitter = new LineSplitter(200);
      const found: string[] = [];
      let at = 0;
      for (const cut of cuts) {
        found.push(...splitter.push(bytes.subarray(at, at + cut)));
        at += cut;
      }
      found.push(...splitter.push(bytes.subarray(at)));
      assert.deepEqual(found, lines);
    }),
  );
});

test('a line over the limit ends the stream, in one chunk or in many', () => {
  const one = new LineSplitter(10);
  assert.deepEqual(one.push(Buffer.from(`ok\n${'x'.repeat(11)}\nmore\n`)), ['ok']);
  assert.equal(one.tooLong, true);
  assert.deepEqual(one.push(Buffer.from('later\n')), []);

  const many = new LineSplitter(10);
  for (let i = 0; i < 1000; i++) many.push(Buffer.from('x'));
  assert.equal(many.tooLong, true);
});
