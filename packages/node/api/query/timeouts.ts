import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** What a client gets that does not say how long: seconds. */
export const DEFAULT_TIMEOUT = { v1: 15, v2: 300 } as const;

/** The least that a refresh extends to. */
const MIN_REFRESH_SECONDS = 15;

/** @throws AenvError `invalid_timeout` unless 0 < seconds <= max */
export function timeToLive(seconds: number, maxSeconds: number): number {
  if (seconds <= 0) throw new AenvError('invalid_timeout', 'body.timeout: Timeout must be greater than 0');
  return belowLimit(seconds, maxSeconds);
}

/** The same where "now" may be asked for: what is below 0 counts as 0. */
export function newTimeout(seconds: number, maxSeconds: number): number {
  return belowLimit(Math.max(0, seconds), maxSeconds);
}

export function refreshDuration(seconds: number | null | undefined): number {
  return Math.max(MIN_REFRESH_SECONDS, seconds ?? MIN_REFRESH_SECONDS);
}

function belowLimit(seconds: number, maxSeconds: number): number {
  if (seconds <= maxSeconds) return seconds;
  throw new AenvError('invalid_timeout', `body.timeout: Timeout must not be greater than ${maxSeconds} seconds`, {
    remediation: 'Ask for less and extend it while the sandbox is used, or raise `limits.max_timeout_seconds`.',
  });
}
