/** The last bytes of an endless stream, for error messages. Bounded by `capacity` bytes. */
export class TailBuffer {
  readonly #capacity: number;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  append(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > 2 * this.#capacity) this.#compact();
  }

  toString(): string {
    this.#compact();
    return Buffer.concat(this.#chunks).toString();
  }

  /** The last `count` lines that are not empty, joined by newlines. */
  lastLines(count: number): string {
    return this.toString()
      .split('\n')
      .map((line) => line.trimEnd())
      .filter((line) => line !== '')
      .slice(-count)
      .join('\n');
  }

  #compact(): void {
    const all = Buffer.concat(this.#chunks);
    const kept = all.subarray(Math.max(0, all.length - this.#capacity));
    this.#chunks = [kept];
    this.#size = kept.length;
  }
}
