import type { Clock } from '@aenv/platform/clock/clock.ts';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(now = Date.parse('2026-01-01T00:00:00Z')) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (signal?.aborted) return Promise.reject(signal.reason);
    const sleeper = { due: this.#now + ms, wake: resolve };
    this.#sleepers.add(sleeper);
    signal?.addEventListener(
      'abort',
      () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason);
      },
      { once: true },
    );
    return promise;
  }

  /** Moves time on, second by second unless the steps are larger, and lets whoever wakes up act. */
  async advance(ms: number, stepMs = 1_000): Promise<void> {
    const end = this.#now + ms;
    while (this.#now < end) {
      this.#now = Math.min(end, this.#now + stepMs);
      for (const sleeper of this.#sleepers) {
        if (sleeper.due > this.#now) continue;
        this.#sleepers.delete(sleeper);
        sleeper.wake();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
