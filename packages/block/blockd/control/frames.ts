/** JSON messages on a stream: 4 bytes of length (big-endian), then so many bytes of UTF-8. */

export const MAX_FRAME = 1024 * 1024;
const PREFIX = 4;

/** @throws RangeError for a message that nobody would take */
export function encodeFrame(message: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  if (json.length > MAX_FRAME) throw new RangeError(`a message of ${json.length} bytes`);
  const frame = Buffer.allocUnsafe(PREFIX + json.length);
  frame.writeUInt32BE(json.length, 0);
  json.copy(frame, PREFIX);
  return frame;
}

/** Takes a stream apart into messages. Holds at most one frame and what came with its end. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;
  /** bytes of the next frame, its prefix included; unknown until the prefix is here */
  #wanted = PREFIX;

  /**
   * The messages that are complete with this chunk, in order.
   * @throws RangeError for a frame that is too long, SyntaxError for one that is no JSON: nothing after it can be read
   */
  *push(chunk: Buffer): Generator<unknown> {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    while (this.#length >= this.#wanted) {
      const bytes = Buffer.concat(this.#chunks, this.#length);
      const size = bytes.readUInt32BE(0);
      if (size > MAX_FRAME) throw new RangeError(`a message of ${size} bytes`);
      const end = PREFIX + size;
      const complete = bytes.length >= end;
      this.#chunks = [complete ? bytes.subarray(end) : bytes];
      this.#length = complete ? bytes.length - end : bytes.length;
      this.#wanted = complete ? PREFIX : end;
      if (complete) yield JSON.parse(bytes.toString('utf8', PREFIX, end));
    }
  }
}
