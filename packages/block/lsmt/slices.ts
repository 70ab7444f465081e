import { setImmediate as breathe } from 'node:timers/promises';

/** Work in slices: each `yield` is a place where others may go first. */
export type Sliced<T> = Generator<undefined, T, undefined>;

/** Entries that a slice handles: about a millisecond. */
export const SLICE = 32_768;

/** Does all of it at once. */
export function atOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Does it between other events, so that a million of segments does not hold up requests of other volumes. */
export async function inSlices<T>(work: Sliced<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    await breathe();
    signal?.throwIfAborted();
  }
}
