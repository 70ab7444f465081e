import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeFrame, FrameReader, MAX_FRAME } from './frames.ts';

test('messages come out as they went in, wherever the stream is cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 40 })),
      (messages, cuts) => {
        const stream = Buffer.concat(messages.map(encodeFrame));
        const reader = new FrameReader();
        const found: unknown[] = [];
        for (let at = 0, index = 0; at < stream.length; index++) {
          const step = cuts[index % Math.max(1, cuts.length)] ?? stream.length;
          found.push(...reader.push(stream.subarray(at, at + step)));
          at += step;
        }
        assert.equal(JSON.stringify(found), JSON.stringify(messages));
      },
    ),
    { seed: 5, numRuns: 300 },
  );
});

test('a frame that is too long is refused before it is here, and one that is no JSON when it is', () => {
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(MAX_FRAME + 1);
  assert.throws(() => [...new FrameReader().push(prefix)], RangeError);
  assert.throws(() => [...new FrameReader().push(Buffer.from([0, 0, 0, 1, 0x7b]))], SyntaxError);
  assert.throws(() => encodeFrame('x'.repeat(MAX_FRAME)), RangeError);
});
