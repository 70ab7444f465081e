import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { FrameReader, frame } from './frames.ts';

test('messages come out as they went in, however the stream is cut', () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 });
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), (list, cuts) => {
      const stream = Buffer.concat(list.map((message) => frame(message)));
      const reader = new FrameReader(300);
      const out: Buffer[] = [];
      for (let at = 0, i = 0; at < stream.length; i++) {
        const size = cuts[i % cuts.length] ?? 1;
        out.push(...(reader.push(stream.subarray(at, at + size)) ?? []));
        at += size;
      }
      assert.deepEqual(
        out.map((bytes) => [...bytes]),
        list.map((bytes) => [...bytes]),
      );
    }),
  );
});

test('a message that announces more than the limit is refused before it is there', () => {
  assert.equal(new FrameReader(100).push(Buffer.of(0, 101)), undefined);
  assert.deepEqual(new FrameReader(100).push(Buffer.of(0, 100)), []);
});
