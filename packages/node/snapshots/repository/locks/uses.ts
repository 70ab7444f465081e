/** Counts who uses what. */
export class Uses {
  readonly #counts = new Map<string, number>();

  /** @returns ends this use; tells whether it was the last one. Later calls do nothing and tell no. */
  take(key: string): () => boolean {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    let taken = true;
    return () => {
      if (!taken) return false;
      taken = false;
      const left = (this.#counts.get(key) ?? 1) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
      return left === 0;
    };
  }

  keys(): Iterable<string> {
    return this.#counts.keys();
  }

  has(key: string): boolean {
    return this.#counts.has(key);
  }
}
