import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { memorySource } from '@aenv/block/blob/memory-source.ts';
import fc from 'fast-check';
import { PART } from '../geometry.ts';
import { decodeTrace, encodeTrace } from './format.ts';
import { TraceRecorder } from './recorder.ts';
import { replayTrace } from './replay.ts';

const record = fc
  .tuple(fc.nat({ max: 255 }), fc.nat({ max: 2 ** 40 }), fc.nat({ max: 2 ** 30 }))
  .map(([layer, offset, length]) => ({ layer, offset, length }));

test('a trace comes back as it was written', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 50 }), (records) => {
      assert.deepEqual(decodeTrace(encodeTrace(records)), records);
    }),
    { numRuns: 200, seed: 3 },
  );
});

test('a trace has the bytes that the format says', () => {
  assert.equal(
    encodeTrace([{ layer: 2, offset: 0x1_0000_0000, length: 65_536 }]).toString('hex'),
    // magic, padding, bytes, crc, padding
    '2018efc20000000018000000000000001c1b690e00000000' +
      // R, layer, length, offset
      '520000000200000000000100000000000000000001000000',
  );
});

test('a damaged, cut or strange trace is none; writes in it are passed over', () => {
  const whole = encodeTrace([{ layer: 0, offset: 0, length: 1 }]);
  for (let at = 0; at < whole.length; at++) {
    // padding counts for nothing
    if ((at >= 4 && at < 8) || (at >= 20 && at < 24)) continue;
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] ?? 0) ^ 0x40;
    assert.equal(decodeTrace(damaged), undefined, String(at));
  }
  for (const data of [Buffer.alloc(0), whole.subarray(0, 30), Buffer.concat([whole, Buffer.alloc(24)])]) {
    assert.equal(decodeTrace(data), undefined);
  }
  assert.deepEqual(decodeTrace(encodeTrace([])), []);
});

test('what is read is written down once, in order, and neighbours together', async () => {
  const recorder = new TraceRecorder();
  const low = recorder.add(memorySource(randomBytes(5 * PART + 100)));
  const high = recorder.add(memorySource(randomBytes(PART)));
  const target = Buffer.alloc(2 * PART);
  await low.read(target.subarray(0, 10), 3 * PART);
  low.readSync(target.subarray(0, 10), 5 * PART + 50);
  await low.read(target.subarray(0, 100), 3 * PART + 200);
  await high.read(target.subarray(0, 1), 0);
  await low.read(target, 0);
  const records = recorder.finish();
  await low.read(target.subarray(0, 1), 2 * PART);
  assert.deepEqual(records, [
    { layer: 0, offset: 3 * PART, length: PART },
    { layer: 0, offset: 5 * PART, length: 100 },
    { layer: 1, offset: 0, length: PART },
    { layer: 0, offset: 0, length: 2 * PART },
  ]);
});

test('a replay reads what the trace names and the layers have', async () => {
  const reads: [number, number][] = [];
  const source = memorySource(Buffer.alloc(3 * 2 ** 20));
  const layer = {
    ...source,
    readSync: () => false,
    read: async (target: Uint8Array, offset: number) => void reads.push([offset, target.length]),
  };
  const records = [
    { layer: 0, offset: 2 ** 20, length: 2 ** 30 },
    { layer: 0, offset: 2 ** 33, length: 5 },
    { layer: 7, offset: 0, length: 5 },
    { layer: 0, offset: 10, length: 0 },
  ];
  await replayTrace(records, [layer], new AbortController().signal);
  assert.deepEqual(reads, [
    [2 ** 20, 2 ** 20],
    [2 * 2 ** 20, 2 ** 20],
  ]);
  await assert.rejects(replayTrace(records, [layer], AbortSignal.abort(new Error('enough'))), /enough/);
});
