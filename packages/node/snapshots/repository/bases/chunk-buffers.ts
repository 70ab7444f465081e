/** Buffers that are used again: fresh memory of this size costs as much as hashing what is in it. */
export class ChunkBuffers {
  readonly #free: Buffer[] = [];

  /** A buffer with anything in it. */
  take(size: number): Buffer {
    const at = this.#free.findIndex(({ length }) => length === size);
    return this.#free.splice(at, at < 0 ? 0 : 1)[0] ?? Buffer.allocUnsafeSlow(size);
  }

  giveBack(buffer: Buffer): void {
    this.#free.push(buffer);
  }
}
