import { EventType, WatchDirResponseSchema } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { create, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { jsonFrame } from '../../rpc/frames.ts';

const TYPE_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(EventType).map(([name, value]) => [value, `EVENT_TYPE_${name}`]),
);

/**
 * The frame of a change in proto3 JSON. Installing packages makes tens of thousands of them in a row, and to make each
 * one by its schema would take ten times as long as everything else.
 */
export function encodeChange(message: MessageInitShape<typeof WatchDirResponseSchema>): Buffer {
  const { event } = message;
  if (event?.case === 'filesystem' && event.value.entry === undefined) {
    const { name, type } = event.value;
    return jsonFrame({ filesystem: { name, type: TYPE_NAMES.get(type ?? EventType.UNSPECIFIED) } });
  }
  return jsonFrame(toJson(WatchDirResponseSchema, create(WatchDirResponseSchema, message)));
}
