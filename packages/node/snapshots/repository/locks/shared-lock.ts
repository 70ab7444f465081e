/**
 * Many may hold it together, or one alone. Whoever comes after a waiting exclusive one waits behind it, so nobody starves;
 * a holder must not ask for it again.
 */
export class SharedLock {
  #exclusive: Promise<unknown> = Promise.resolve();
  readonly #holders = new Set<Promise<unknown>>();

  shared<T>(task: () => Promise<T>): Promise<T> {
    const running = this.#exclusive.then(task);
    const settled = running.then(
      () => {},
      () => {},
    );
    this.#holders.add(settled);
    void settled.then(() => this.#holders.delete(settled));
    return running;
  }

  exclusive<T>(task: () => Promise<T>): Promise<T> {
    const running = Promise.all([this.#exclusive, ...this.#holders]).then(task);
    this.#exclusive = running.catch(() => {});
    return running;
  }
}
