import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

export interface GateOptions {
  /** tasks that run at the same time */
  readonly concurrency: number;
  /** tasks that may wait; one more is refused */
  readonly maxQueue: number;
}

interface Waiter {
  readonly admit: () => void;
  readonly refuse: (reason: unknown) => void;
}

/**
 * Bounds how many tasks run at the same time: a boot takes a whole core, and twenty at once would all miss their
 * deadlines. Waiters are served in order; the queue is bounded, so that a burst is refused early and not after minutes.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #queue: Waiter[] = [];
  #active = 0;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /**
   * Runs the task when there is room.
   * @throws AenvError `capacity_exhausted` when the queue is full; the signal's reason when it aborts while waiting
   */
  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#enter(signal);
    try {
      return await task();
    } finally {
      const next = this.#queue.shift();
      // The place goes straight to the next one, so that nobody slips in between.
      if (next === undefined) this.#active--;
      else next.admit();
    }
  }

  get waiting(): number {
    return this.#queue.length;
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { concurrency, maxQueue } = this.#options;
    if (this.#active < concurrency) {
      this.#active++;
      return;
    }
    if (this.#queue.length >= maxQueue) {
      throw new AenvError(
        'capacity_exhausted',
        `${this.#active} sandboxes are starting and ${this.#queue.length} wait: too many at the same time`,
        { remediation: 'Repeat in some seconds, or raise `limits.max_concurrent_starts`.' },
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { admit: resolve, refuse: reject };
    const onAbort = () => {
      const place = this.#queue.indexOf(waiter);
      if (place < 0) return;
      this.#queue.splice(place, 1);
      waiter.refuse(signal.reason);
    };
    this.#queue.push(waiter);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
