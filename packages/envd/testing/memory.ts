import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes that this process holds, in the heap and beside it, when garbage is collected. */
export function heldBytes(): number {
  // Contexts that are made after the flag have the collector.
  setFlagsFromString('--expose-gc');
  // What one frees beside the heap is counted as free by the next one.
  runInNewContext('gc(); gc()');
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
