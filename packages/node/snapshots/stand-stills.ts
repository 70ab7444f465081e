/**
 * The moments in which guests stand still for a capture. What nobody waits for leaves the processor and the threads of this
 * process to them: a guest that stands still for milliseconds would else stand still for seconds.
 */
export class StandStills {
  #count = 0;
  #over = Promise.withResolvers<void>();

  /** Does something while a guest stands still. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#count++ === 0) this.#over = Promise.withResolvers();
    try {
      return await work();
    } finally {
      if (--this.#count === 0) this.#over.resolve();
    }
  }

  /** Resolves when no guest stands still; at once when none does. */
  async none(): Promise<void> {
    while (this.#count > 0) await this.#over.promise;
  }
}
