import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Rollback } from '@aenv/platform/rollback/rollback.ts';

/** A part of the node that takes longer to end is named, and again each time that it has taken as long once more, `ms`. */
const LONG_MS = 10_000;

/**
 * Remembers how the parts of the node end, one after the other, in reverse. An end that hangs holds up all that come after
 * it: the log says whose it is.
 */
export function partsOf(taken: Rollback, log: Logger, longMs = LONG_MS) {
  return (part: string, close: () => unknown): void =>
    taken.add(async () => {
      const begin = performance.now();
      const waiting = () => log.warn('the end waits for a part', { part, ms: Math.round(performance.now() - begin) });
      const timer = setInterval(waiting, longMs);
      try {
        await close();
      } finally {
        clearInterval(timer);
      }
    });
}
