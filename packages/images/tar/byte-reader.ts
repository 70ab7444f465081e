/** Pulls a stream of chunks by counts of bytes. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunk: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Between 1 and `max` bytes without copying; an empty buffer at the end of the stream. */
  async some(max: number): Promise<Buffer> {
    while (this.#chunk.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return Buffer.alloc(0);
      this.#chunk = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    const part = this.#chunk.subarray(0, max);
    this.#chunk = this.#chunk.subarray(part.length);
    return part;
  }

  /** Exactly `count` bytes, or fewer when the stream ends before. */
  async upTo(count: number): Promise<Buffer> {
    const first = await this.some(count);
    if (first.length === count || first.length === 0) return first;
    const parts = [first];
    let missing = count - first.length;
    while (missing > 0) {
      const part = await this.some(missing);
      if (part.length === 0) break;
      parts.push(part);
      missing -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** Lets go of the stream, read to its end or not. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  /** Reads to the end of the stream. */
  async drain(): Promise<void> {
    while ((await this.some(Number.MAX_SAFE_INTEGER)).length > 0);
  }
}
