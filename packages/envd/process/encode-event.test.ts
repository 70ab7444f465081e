import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { StartResponseSchema } from '@aenv/contracts/envd/gen/process_pb.ts';
import { create, fromJson, toJson } from '@bufbuild/protobuf';
import { type EventMessage, encodeEvent } from './encode-event.ts';

const EVENTS: EventMessage['event'][] = [
  { event: { case: 'start', value: { pid: 4_294_967_295 } } },
  { event: { case: 'keepalive', value: {} } },
  { event: { case: 'end', value: { exitCode: 0, exited: true, status: 'exit status 0' } } },
  { event: { case: 'end', value: { exitCode: -1, exited: false, status: 'signal: "é"', error: '\n' } } },
  ...[0, 1, 2, 3, 4, 100_000].flatMap((size): EventMessage['event'][] =>
    (['stdout', 'stderr', 'pty'] as const).map((name) => ({
      event: { case: 'data', value: { output: { case: name, value: new Uint8Array(randomBytes(size)) } } },
    })),
  ),
];

test('an event is read by the protobuf library as the message that it was made from', () => {
  for (const event of EVENTS) {
    const bytes = encodeEvent({ event });
    assert.equal(bytes[0], 0);
    assert.equal(bytes.readUInt32BE(1), bytes.length - 5);
    const expected = toJson(StartResponseSchema, create(StartResponseSchema, { event }));
    const read = fromJson(StartResponseSchema, JSON.parse(bytes.subarray(5).toString()));
    assert.deepEqual(toJson(StartResponseSchema, read), expected);
  }
});

test('output that is a part of a larger buffer is encoded alone', () => {
  const part = new Uint8Array(Buffer.from('--text--')).subarray(2, 6);
  const bytes = encodeEvent({ event: { event: { case: 'data', value: { output: { case: 'pty', value: part } } } } });
  assert.equal(bytes.subarray(5).toString(), '{"event":{"data":{"pty":"dGV4dA=="}}}');
});
