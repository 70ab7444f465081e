/** How many sandboxes are on their way to run. */
export class Starts {
  #count = 0;
  #none = Promise.withResolvers<void>();

  /** One more, until it is disposed: it runs, or never will. */
  begin(): Disposable {
    if (this.#count++ === 0) this.#none = Promise.withResolvers();
    return {
      [Symbol.dispose]: () => {
        if (--this.#count === 0) this.#none.resolve();
      },
    };
  }

  /** Resolves when there is none; undefined when there is none now. */
  none(): Promise<void> | undefined {
    return this.#count === 0 ? undefined : this.#none.promise;
  }
}
