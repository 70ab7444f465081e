/**
 * Numbers 1 to `capacity`, each out at most once. They are given in turn, so that the address, the uid and the names
 * that derive from a number just returned are not used again before all others were.
 */
export class IndexRing {
  readonly capacity: number;
  readonly #out = new Set<number>();
  #last = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get free(): number {
    return this.capacity - this.#out.size;
  }

  /** The next free number, or undefined when all are out. */
  take(): number | undefined {
    if (this.free === 0) return undefined;
    do this.#last = (this.#last % this.capacity) + 1;
    while (this.#out.has(this.#last));
    this.#out.add(this.#last);
    return this.#last;
  }

  /** Takes exactly this number. @returns whether it was free */
  claim(index: number): boolean {
    if (index < 1 || index > this.capacity || this.#out.has(index)) return false;
    this.#out.add(index);
    return true;
  }

  give(index: number): void {
    this.#out.delete(index);
  }
}
