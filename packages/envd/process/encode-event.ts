import type { ProcessEventSchema } from '@aenv/contracts/envd/gen/process_pb.ts';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { FRAME_HEAD, frame, jsonFrame } from '../rpc/frames.ts';

/** An event as it is yielded, for Start and Connect alike. */
export interface EventMessage {
  readonly event: MessageInitShape<typeof ProcessEventSchema>;
}

const AFTER = '"}}}';

/**
 * The frame of an event in proto3 JSON. Output is what envd moves most of: its bytes become base64 in the frame with one
 * copy, instead of going through a message, a JSON value, a text and an envelope.
 */
export function encodeEvent(message: EventMessage): Buffer {
  const { event } = message.event;
  if (event?.case !== 'data')
    return jsonFrame({ event: event?.case === undefined ? {} : { [event.case]: event.value } });
  const output = event.value.output;
  if (output?.case === undefined) return jsonFrame({ event: { data: {} } });
  const before = `{"event":{"data":{"${output.case}":"`;
  const { buffer, byteOffset, byteLength } = output.value ?? new Uint8Array();
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('base64');
  const result = Buffer.allocUnsafe(FRAME_HEAD + before.length + text.length + AFTER.length);
  result.write(before, FRAME_HEAD, 'latin1');
  result.write(text, FRAME_HEAD + before.length, 'latin1');
  result.write(AFTER, FRAME_HEAD + before.length + text.length, 'latin1');
  return frame(result);
}
