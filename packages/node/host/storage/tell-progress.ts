import type { VerifyProgress, VerifyStep } from '../../storage/verify/progress.ts';
import { formatBytes, type Output } from '../terminal/output.ts';

/** Between two lines about the same kind, in `ms`. */
const EVERY_MS = 2_000;

const NAMES: Record<VerifyStep['what'], string> = {
  layer: 'layers',
  machine: 'captured machines',
  guest: 'kernels and drives',
  image: 'images',
  vmm: 'QEMU',
  source: 'sources of templates',
  home: 'home',
};

/** Prints how far a verification is: one line for each kind when it is done, and some in between where it takes long. */
export function tellProgress(output: Output, now: () => number = () => performance.now()): VerifyProgress {
  let next = now() + EVERY_MS;
  return ({ what, done, of, checkedBytes }) => {
    if (done < of && now() < next) return;
    next = now() + EVERY_MS;
    output.err(`${NAMES[what]}: ${done} of ${of}, ${formatBytes(checkedBytes)} read`);
  };
}
