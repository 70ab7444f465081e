/** Frames of a Connect stream: one byte of flags, the length in four, and a message (connectrpc.com/docs/protocol). */

/** Set on the last frame, whose message is not one of the method. */
const END_FLAG = 2;
/** envd's messages carry output in pieces of far less. */
const MAX_FRAME = 16 * 1024 * 1024;

export interface ConnectFrame {
  readonly last: boolean;
  /** parsed JSON */
  readonly message: unknown;
}

export function encodeFrame(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

/**
 * Takes a stream apart.
 * @throws Error for a frame that is too large or no JSON, and for a stream that breaks off within one
 */
export async function* decodeFrames(source: AsyncIterable<Buffer>): AsyncGenerator<ConnectFrame> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    while (pending.length >= 5) {
      const length = pending.readUInt32BE(1);
      if (length > MAX_FRAME) throw new Error(`a frame of ${length} bytes`);
      if (pending.length < 5 + length) break;
      const last = (pending.readUInt8(0) & END_FLAG) !== 0;
      yield { last, message: JSON.parse(pending.toString('utf8', 5, 5 + length)) };
      pending = pending.subarray(5 + length);
    }
  }
  if (pending.length > 0) throw new Error('the stream broke off within a frame');
}
