import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

// https://connectrpc.com/docs/protocol/#streaming-rpcs: flags, length (32 bits, big endian), message.

/** Bytes before the message of a frame. */
export const FRAME_HEAD = 5;
const COMPRESSED = 1;
const END = 2;

/** Writes the head into the room that was left for it. */
export function frame(buffer: Buffer, flags = 0): Buffer {
  buffer[0] = flags;
  buffer.writeUInt32BE(buffer.length - FRAME_HEAD, 1);
  return buffer;
}

/** JSON with room for the head before it. */
export function jsonFrame(message: unknown, flags = 0): Buffer {
  const text = JSON.stringify(message);
  const buffer = Buffer.allocUnsafe(FRAME_HEAD + Buffer.byteLength(text));
  buffer.write(text, FRAME_HEAD);
  return frame(buffer, flags);
}

/** The last frame of an answer. */
export function endFrame(error?: { readonly code: string; readonly message: string }): Buffer {
  return jsonFrame(error === undefined ? {} : { error }, END);
}

/**
 * Cuts a stream of bytes into the messages of its frames, wherever the pieces begin and end.
 * @param limit bytes of one message; a longer one is refused by its head, before it is in memory
 * @throws AenvError `body_too_large`, `invalid_request`
 */
export async function* readFrames(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  let pieces: Buffer[] = [];
  let size = 0;
  let needed = FRAME_HEAD;
  for await (const piece of source) {
    pieces.push(piece);
    size += piece.length;
    if (size < needed) continue;
    rest = pieces.length === 1 ? piece : Buffer.concat(pieces);
    for (;;) {
      needed = frameSize(rest, limit);
      if (rest.length < needed) break;
      yield rest.subarray(FRAME_HEAD, needed);
      rest = rest.subarray(needed);
    }
    pieces = [rest];
    size = rest.length;
  }
  if (size > 0) throw new AenvError('invalid_request', 'the request ends in the middle of a frame');
}

/** The size of the frame that begins here, as far as it can be known. */
function frameSize(bytes: Buffer, limit: number): number {
  if (bytes.length < FRAME_HEAD) return FRAME_HEAD;
  const flags = bytes[0] ?? 0;
  if (flags & COMPRESSED) throw new AenvError('invalid_request', 'compressed frames are not served');
  if (flags !== 0) throw new AenvError('invalid_request', `unknown flags ${flags} of a frame`);
  const length = bytes.readUInt32BE(1);
  if (length > limit) throw new AenvError('body_too_large', `the message is larger than ${limit} bytes`);
  return FRAME_HEAD + length;
}
