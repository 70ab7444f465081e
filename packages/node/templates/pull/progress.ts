import type { PullProgress } from '@aenv/images/pull/contract.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';

const EVERY_MS = 2000;

/** Turns the progress of a pull into lines of its log: one for each layer, and one every two seconds within it. */
export function describeProgress(clock: Clock, write: (line: string) => void): (progress: PullProgress) => void {
  let step = '';
  let last = 0;
  return (progress) => {
    if (progress.phase === 'resolving') {
      write(`looking for ${progress.name}`);
      return;
    }
    const { layer, layers, fetchedBytes, totalBytes } = progress;
    const now = layer > layers ? 'start state' : `layer ${layer} of ${layers}`;
    if (now === step && clock.now() - last < EVERY_MS) return;
    step = now;
    last = clock.now();
    write(`${now}, ${megabytes(fetchedBytes)} of ${megabytes(totalBytes)} fetched`);
  };
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
