type Undo = () => void | Promise<void>;

/**
 * Undo steps of resources taken so far. Use with `await using`: unless `keep()` was called, leaving the block runs the
 * steps in reverse, so a failed step leaks nothing. A failing undo does not stop the others; all failures come out as
 * one AggregateError.
 */
export class Rollback implements AsyncDisposable {
  #steps: Undo[] = [];

  /** Remembers how to undo what was just taken. */
  add(undo: Undo): void {
    this.#steps.push(undo);
  }

  /** Remembers how to undo what was taken before everything else, and so goes last. */
  addFirst(undo: Undo): void {
    this.#steps.unshift(undo);
  }

  /** Success: nothing is undone here any more. Returns the steps, for whoever owns the resources from now on. */
  keep(): Rollback {
    const owner = new Rollback();
    owner.#steps = this.#steps;
    this.#steps = [];
    return owner;
  }

  /** Runs all steps in reverse, each at most once. */
  async run(): Promise<void> {
    const errors: unknown[] = [];
    for (let undo = this.#steps.pop(); undo !== undefined; undo = this.#steps.pop()) {
      try {
        await undo();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'undo failed');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run();
  }
}
