import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { LiveSandboxes } from '../live/live-sandboxes.ts';

/** What paused sandboxes may take; absent members are no limit. */
export interface PausedLimits {
  readonly ttlSeconds?: number | undefined;
  readonly max?: number | undefined;
  readonly maxBytes?: number | undefined;
}

/**
 * Whether one more sandbox may be paused. Synchronous, so that its row can be written right after it: two pauses never
 * share the last place.
 * @param bytes what it would take at most
 * @throws AenvError `capacity_exhausted`, naming the limit
 */
export function admitPaused(sandboxes: LiveSandboxes, limits: PausedLimits, bytes: number, live: LiveSandbox): void {
  const paused = sandboxes.all().filter((other) => other !== live && other.record.checkpoint !== undefined);
  if (limits.max !== undefined && paused.length >= limits.max) {
    throw exhausted(`${paused.length} sandboxes are paused, and paused.max is ${limits.max}`);
  }
  const taken = paused.reduce((sum, { record }) => sum + (record.checkpoint?.bytes ?? 0), 0);
  if (limits.maxBytes !== undefined && taken + bytes > limits.maxBytes) {
    throw exhausted(
      `paused sandboxes take ${taken} bytes, and with up to ${bytes} more they would be beyond paused.max_bytes (${limits.maxBytes})`,
    );
  }
}

function exhausted(message: string): AenvError {
  return new AenvError('capacity_exhausted', message, {
    remediation: 'Delete paused sandboxes that are not needed, or raise the limit named in the message.',
  });
}
