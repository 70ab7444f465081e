const NOTHING = Buffer.alloc(0);

/**
 * Bytes that have come in and are not used yet. What lies within one chunk of the socket is handed out as a view of it,
 * uncopied. Whoever pushes takes out what can be taken before the next push, so few chunks wait at any time; where chunks
 * are only lent, it then keeps what is left over.
 */
export class Input {
  #head: Buffer = NOTHING;
  #rest: Buffer[] = [];
  #length = 0;

  /** bytes that are there */
  get length(): number {
    return this.#length;
  }

  /** @param chunk must stay as it is until it is used up, or `keep` is called */
  push(chunk: Buffer): void {
    if (this.#head.length === 0) this.#head = chunk;
    else this.#rest.push(chunk);
    this.#length += chunk.length;
  }

  /** What was pushed and is not used up is copied: its chunk may be written over. */
  keep(): void {
    // Those before the last one were kept when it was pushed.
    const last = this.#rest.pop();
    if (last !== undefined) this.#rest.push(Buffer.from(last));
    else if (this.#head.length > 0) this.#head = Buffer.from(this.#head);
  }

  /**
   * The next `count` bytes, which stay; a view where they lie in one chunk.
   * @throws RangeError if there are fewer
   */
  peek(count: number): Buffer {
    if (count > this.#length) throw new RangeError(`${count} bytes wanted, ${this.#length} there`);
    if (this.#head.length < count) {
      this.#head = Buffer.concat([this.#head, ...this.#rest], this.#length);
      this.#rest = [];
    }
    return this.#head.subarray(0, count);
  }

  /** Takes the next `count` bytes out. @throws RangeError if there are fewer */
  take(count: number): Buffer {
    const taken = this.peek(count);
    this.skip(count);
    return taken;
  }

  /** Drops up to `count` bytes. @returns how many there were */
  skip(count: number): number {
    let left = Math.min(count, this.#length);
    const skipped = left;
    this.#length -= left;
    while (left > 0) {
      const step = Math.min(left, this.#head.length);
      this.#head = this.#head.subarray(step);
      left -= step;
      if (this.#head.length === 0) this.#head = this.#rest.shift() ?? NOTHING;
    }
    return skipped;
  }

  /** Moves as many bytes as there are into `target` from `at` on. @returns how many that were */
  moveInto(target: Uint8Array, at: number): number {
    let moved = 0;
    while (this.#length > 0 && at + moved < target.length) {
      const step = this.#head.copy(target, at + moved);
      moved += step;
      this.skip(step);
    }
    return moved;
  }
}
