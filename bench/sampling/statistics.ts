/** What is told of a series of samples. With few samples `p95` and `p99` are next to the largest one. */
export interface Summary {
  readonly n: number;
  readonly min: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * A quantile by linear interpolation between the two nearest samples.
 * @param q from 0 to 1
 * @throws RangeError without samples
 */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = q * (sorted.length - 1);
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  if (low === undefined || high === undefined) throw new RangeError('a quantile of nothing');
  return low + (high - low) * (at - Math.floor(at));
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

/** Rounded to three significant decimals of its unit. */
export function summarise(samples: readonly number[]): Summary {
  const at = (q: number) => round(quantile(samples, q));
  return { n: samples.length, min: at(0), p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

/** Three decimals below 10, two below 100, else one. */
export function round(value: number): number {
  const digits = Math.abs(value) < 10 ? 3 : Math.abs(value) < 100 ? 2 : 1;
  return Number(value.toFixed(digits));
}
