import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** How long another apt or dpkg is waited for, in seconds. */
export const LOCK_WAIT_SECONDS = 180;

/**
 * Repeats a command of apt while another process holds the lock that it needs, up to `LOCK_WAIT_SECONDS`. apt waits by
 * itself for dpkg's lock (DPkg::Lock::Timeout), but not for that of the package lists.
 */
export async function retryWhileLocked<T>(action: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const deadline = Date.now() + LOCK_WAIT_SECONDS * 1000;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      const locked = error instanceof AenvError && /Could not get lock|Unable to lock/.test(error.message);
      if (!locked || Date.now() > deadline) throw error;
    }
    await delay(500, undefined, signal === undefined ? {} : { signal });
  }
}
