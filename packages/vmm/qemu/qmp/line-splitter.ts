const NEWLINE = 0x0a;

/**
 * Cuts a byte stream into lines of at most `maxLength` bytes. What comes from a VMM is untrusted, since a guest may have
 * taken it over: a longer line ends the stream with `tooLong`, and nothing more is buffered.
 */
export class LineSplitter {
  readonly #maxLength: number;
  #chunks: Buffer[] = [];
  #size = 0;
  #tooLong = false;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** Whether the peer sent a line that is longer than allowed; `push` returns nothing any more. */
  get tooLong(): boolean {
    return this.#tooLong;
  }

  /** The lines completed by this chunk, without their end, empty ones left out. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    while (!this.#tooLong) {
      const end = chunk.indexOf(NEWLINE, start);
      this.#keep(chunk.subarray(start, end === -1 ? chunk.length : end));
      if (end === -1 || this.#tooLong) break;
      const line = Buffer.concat(this.#chunks).toString().trim();
      if (line !== '') lines.push(line);
      this.#chunks = [];
      this.#size = 0;
      start = end + 1;
    }
    return lines;
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#maxLength) {
      this.#tooLong = true;
      this.#chunks = [];
    } else if (part.length > 0) {
      this.#chunks.push(part);
    }
  }
}
