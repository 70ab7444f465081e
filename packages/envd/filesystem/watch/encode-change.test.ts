import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventType, WatchDirResponseSchema } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { create, fromJson, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { encodeChange } from './encode-change.ts';

test('a change is read by the protobuf library as the message that it was made from', () => {
  const messages: MessageInitShape<typeof WatchDirResponseSchema>[] = [
    { event: { case: 'start', value: {} } },
    { event: { case: 'keepalive', value: {} } },
    { event: { case: 'filesystem', value: { name: 'x', type: EventType.CREATE, entry: { name: 'x', size: 5n } } } },
    ...Object.values(EventType)
      .filter((type) => type !== EventType.UNSPECIFIED)
      .map((type) => ({ event: { case: 'filesystem' as const, value: { name: 'a/"é🦀\n\ufffd', type } } })),
  ];
  for (const message of messages) {
    const bytes = encodeChange(message);
    assert.deepEqual([bytes[0], bytes.readUInt32BE(1)], [0, bytes.length - 5]);
    const expected = toJson(WatchDirResponseSchema, create(WatchDirResponseSchema, message));
    assert.deepEqual(JSON.parse(bytes.subarray(5).toString()), expected);
    fromJson(WatchDirResponseSchema, expected);
  }
});
