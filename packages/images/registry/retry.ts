import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { isTransient } from './http/failures.ts';

export interface RetryPolicy {
  /** attempts in all */
  readonly attempts: number;
  /** `ms` before the second attempt, doubled before each further one */
  readonly firstWaitMs: number;
  /** the longest wait in `ms`, also where a server asks for a longer one */
  readonly maxWaitMs: number;
}

export const DEFAULT_RETRY: RetryPolicy = { attempts: 5, firstWaitMs: 250, maxWaitMs: 60_000 };

/**
 * Repeats what failed for a reason that may pass, with growing waits of random length, or as long as the server asks.
 * @throws the last error; `registry_rate_limited` at once when the server asks for a longer wait than allowed
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  options: { readonly clock: Clock; readonly policy: RetryPolicy; readonly signal?: AbortSignal | undefined },
): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!isTransient(error) || count >= options.policy.attempts) throw error;
      await waitBefore(count, error, options);
    }
  }
}

/**
 * Waits before the next attempt.
 * @param failures in a row so far, at least 1
 * @throws the error itself when its server asks for too long a wait
 */
export async function waitBefore(
  failures: number,
  error: unknown,
  options: { readonly clock: Clock; readonly policy: RetryPolicy; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const { clock, policy, signal } = options;
  const asked = error instanceof AenvError ? error.details.retryAfterMs : undefined;
  if (typeof asked === 'number') {
    if (asked > policy.maxWaitMs) throw error;
    await clock.sleep(asked, signal);
    return;
  }
  const full = Math.min(policy.maxWaitMs, policy.firstWaitMs * 2 ** Math.min(failures - 1, 20));
  await clock.sleep(full * (0.5 + Math.random() / 2), signal);
}

/**
 * A Retry-After header (RFC 9110, section 10.2.3), seconds or a date, in `ms` from now.
 * @returns undefined when there is none that can be read
 */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1000;
  // Date.parse alone takes much that is no date of HTTP.
  const date = /^[A-Z][a-z]+, /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
