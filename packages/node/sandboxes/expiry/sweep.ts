import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';

export interface SweepOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly intervalMs: number;
  /** called at each round; what it begins it does not wait for */
  readonly round: () => void;
}

/** Calls `round` at an interval until closed. A round that throws is logged, and the next one comes all the same. */
export class Sweep {
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;

  constructor(options: SweepOptions) {
    this.#done = this.#loop(options);
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #loop({ clock, log, intervalMs, round }: SweepOptions): Promise<void> {
    for (;;) {
      try {
        await clock.sleep(intervalMs, this.#abort.signal);
      } catch {
        return;
      }
      try {
        round();
      } catch (error) {
        log.error('a round of the expiry sweep failed', { error });
      }
    }
  }
}
