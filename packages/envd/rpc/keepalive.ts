import type { Call } from './call.ts';

// Seconds between signs of life when the client does not say.
const KEEPALIVE_DEFAULT = 90;

/** After how long without a message the client wants a sign of life, `ms`. */
export function keepaliveMs(call: Call): number {
  const value = call.header('keepalive-ping-interval');
  const seconds = value !== undefined && /^\d{1,6}$/.test(value.trim()) ? Number(value) : 0;
  return Math.max(1, seconds || KEEPALIVE_DEFAULT) * 1000;
}
