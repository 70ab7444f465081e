/** Work that is done once for all who ask for it at the same time. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  run(key: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const begun = work().finally(() => this.#running.delete(key));
    this.#running.set(key, begun);
    return begun;
  }

  /** Waits until nobody does this work. */
  async idle(key: string): Promise<void> {
    await this.#running.get(key)?.catch(() => {});
  }
}
