/**
 * One queue per key: tasks with the same key run one after the other in the order of the calls, others side by side.
 * A key without tasks costs nothing.
 */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs the task when all earlier ones of this key have ended, however they ended. */
  async run<T>(key: string, task: () => Promise<T> | T): Promise<T> {
    const before = this.#tails.get(key);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#tails.set(key, done);
    try {
      await before;
      return await task();
    } finally {
      if (this.#tails.get(key) === done) this.#tails.delete(key);
      resolve();
    }
  }

  /** Keys with a task that runs or waits. */
  get size(): number {
    return this.#tails.size;
  }
}
