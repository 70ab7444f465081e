import { setImmediate as breathe } from 'node:timers/promises';

/** Work in slices: each `yield` is a place where others may go first. */
export type Sliced<T> = Generator<undefined, T, undefined>;

/** Entries that a slice handles: a millisecond at most. */
export const SLICE = 8192;

/** Does all of it at once. */
export function atOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Does it between other events, none of it at once, so that a million of segments does not hold up requests of other volumes. */
export async function inSlices<T>(work: Sliced<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    await breathe();
    signal?.throwIfAborted();
    const step = work.next();
    if (step.done) return step.value;
  }
}
