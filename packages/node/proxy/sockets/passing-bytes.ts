import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes that may pass between two collections. */
const INTERVAL = 4 * 1024 * 1024;

/**
 * Keeps memory flat while bodies pass. Node makes a buffer of its own for every chunk read from a socket, and the heap
 * sees only the small object in front of it, so V8 lets 64 MiB and more of dead buffers pile up before it collects.
 * A collection of the young generation for every few MiB takes about a millisecond and frees them.
 */
export class PassingBytes {
  readonly #collect: () => void;
  #since = 0;

  constructor(collect: () => void = youngCollector()) {
    this.#collect = collect;
  }

  /** Counts what has passed. */
  add(bytes: number): void {
    this.#since += bytes;
    if (this.#since < INTERVAL) return;
    this.#since = 0;
    this.#collect();
  }
}

/** V8's own collector, which is there only in contexts made after the flag. */
function youngCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as NodeJS.GCFunction;
  return () => void gc({ type: 'minor', execution: 'sync' });
}
