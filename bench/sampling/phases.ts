import { median, round } from './statistics.ts';

/** Parts of something that is done several times, in `ms` by their names. */
export class PhaseSeries {
  readonly #samples = new Map<string, number[]>();

  constructor(all: readonly Readonly<Record<string, number>>[] = []) {
    for (const phases of all) this.add(phases);
  }

  add(phases: Readonly<Record<string, number>>): void {
    for (const [phase, ms] of Object.entries(phases)) {
      this.#samples.set(phase, [...(this.#samples.get(phase) ?? []), ms]);
    }
  }

  medians(): Record<string, number> {
    return Object.fromEntries([...this.#samples].map(([phase, samples]) => [phase, round(median(samples))]));
  }
}
