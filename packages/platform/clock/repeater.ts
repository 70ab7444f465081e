import type { Clock } from './clock.ts';

export interface RepeaterOptions {
  /** between the end of one round and the begin of the next */
  readonly intervalMs: number;
  readonly clock: Clock;
  /** one round; what it throws goes to `onError` */
  readonly work: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** Does something again and again, the first time after one interval. */
export class Repeater {
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;

  constructor(options: RepeaterOptions) {
    this.#done = this.#loop(options);
  }

  /** Waits for a round that is under way. */
  async close(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #loop({ intervalMs, clock, work, onError }: RepeaterOptions): Promise<void> {
    for (;;) {
      try {
        await clock.sleep(intervalMs, this.#abort.signal);
      } catch {
        return;
      }
      try {
        await work();
      } catch (error) {
        onError(error);
      }
    }
  }
}
