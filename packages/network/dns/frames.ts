/** Messages on a TCP connection: each with its length before it in two bytes (RFC 1035 §4.2.2). */

export function frame(message: Uint8Array): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** Cuts a stream into messages. Holds at most one message of `maxSize` bytes and the chunk at hand. */
export class FrameReader {
  readonly #maxSize: number;
  #pending: Buffer = Buffer.alloc(0);

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  /** The messages that this chunk completes, or undefined when the stream announces one that is too large. */
  push(chunk: Uint8Array): Buffer[] | undefined {
    let rest = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk]);
    const messages: Buffer[] = [];
    while (rest.length >= 2) {
      const size = rest.readUInt16BE(0);
      if (size > this.#maxSize) return undefined;
      if (rest.length < 2 + size) break;
      messages.push(rest.subarray(2, 2 + size));
      rest = rest.subarray(2 + size);
    }
    this.#pending = Buffer.from(rest);
    return messages;
  }
}
