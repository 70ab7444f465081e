/**
 * Does something for each item, `limit` at a time. After a failure no further item is begun, those under way are waited
 * for, and the first failure is thrown.
 */
export async function inParallel<T>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  action: (item: T) => Promise<void>,
): Promise<void> {
  const tasks = new BoundedTasks(limit);
  try {
    for await (const item of items) await tasks.add(() => action(item));
  } finally {
    await tasks.settled();
  }
  tasks.throwIfFailed();
}

/** Tasks that run beside one another, a few at a time. */
export class BoundedTasks {
  readonly #limit: number;
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Begins a task as soon as there is room. @throws what an earlier one threw */
  async add(task: () => Promise<void>): Promise<void> {
    while (this.#running.size >= this.#limit) await Promise.race(this.#running);
    this.throwIfFailed();
    const running = task()
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Waits for all, whatever becomes of them. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

/** Waits for all, whatever becomes of them; then throws the first failure, in their order. */
export async function together<const T extends readonly unknown[]>(
  ...tasks: T
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(tasks);
  return Promise.all(tasks);
}
