import type { BenchHost } from './host/bench-host.ts';

/** One line of the table and of `latest.json`. */
export interface Row {
  /** `MEASUREMENT/WHAT`, stable over time */
  readonly name: string;
  readonly value: number;
  /** `x` for a ratio */
  readonly unit: string;
  /** `<= 1.25` or `>= 0.5`; null for a figure without a goal */
  readonly goal: string | null;
  /** false only when a goal is missed */
  readonly ok: boolean;
  /** how the value came about: `n`, `p50`, `p95`, `p99` of each series, parts, notes */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** What a measurement works with. */
export interface Bench {
  readonly host: BenchHost;
  /** aborted when the measurement has had its time or the user gave up */
  readonly signal: AbortSignal;
  /** how many samples to take where `full` would be taken with time to spare; at least 2 */
  rounds(full: number): number;
  /** a line for whoever waits */
  say(text: string): void;
}

/** Something that is measured, by a name that can be given on the command line. It leaves nothing behind. */
export interface Measurement {
  readonly name: string;
  readonly about: string;
  /** `ms` after which it counts as impossible */
  readonly limitMs: number;
  /** @throws when a value cannot be had; a missed goal is a row with `ok: false` */
  run(bench: Bench): Promise<readonly Row[]>;
}
