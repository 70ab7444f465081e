import { setTimeout as delay } from 'node:timers/promises';

/** Time as a collaborator, so that expiry and retries are tested without waiting. */
export interface Clock {
  /** wall clock in `ms` since the epoch */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      // Node wraps the reason in an AbortError.
      throw signal?.aborted ? signal.reason : error;
    }
  },
};
