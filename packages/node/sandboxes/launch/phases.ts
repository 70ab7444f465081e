/** `ms` of each phase of a create, by name. */
export type Phases = Readonly<Record<string, number>>;

/** A stopwatch that writes down how long the parts of a start take; parts may run side by side. */
export class Stopwatch {
  readonly #phases: Record<string, number> = {};
  readonly #begin = performance.now();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#begin = now();
  }

  /** Times a part; a part that is repeated counts with its last run. */
  async time<T>(phase: string, work: () => Promise<T>): Promise<T> {
    const begin = this.#now();
    try {
      return await work();
    } finally {
      this.#phases[phase] = round(this.#now() - begin);
    }
  }

  /** Writes down what somebody else has timed, in `ms`. */
  note(phase: string, ms: number): void {
    this.#phases[phase] = round(ms);
  }

  /** All parts and the `total` since the stopwatch was made. */
  read(): Phases {
    return { ...this.#phases, total: round(this.#now() - this.#begin) };
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10;
