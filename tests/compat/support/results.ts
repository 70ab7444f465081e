import { cellName, type KnownFailure } from './known-failures.ts';

/** What a run saw of one cell: it works, it fails for a known reason, it fails, or the client has no such thing. */
export type Outcome =
  | { readonly kind: 'works' }
  | { readonly kind: 'known'; readonly reason: string }
  | { readonly kind: 'fails' }
  | { readonly kind: 'absent' };

type Cell = Omit<KnownFailure, 'reason'>;

/** What a run saw of every cell, and the judgement of it by the list of known failures. */
export class Results {
  readonly #outcomes = new Map<string, Outcome>();
  readonly #known: ReadonlyMap<string, string>;

  constructor(known: readonly KnownFailure[]) {
    this.#known = new Map(known.map((failure) => [cellName(failure), failure.reason]));
  }

  of(cell: Cell): Outcome | undefined {
    return this.#outcomes.get(cellName(cell));
  }

  /** What this run saw; of a cell that it did not run, that it is known to fail. */
  expected(cell: Cell): Outcome | undefined {
    const reason = this.#known.get(cellName(cell));
    return this.of(cell) ?? (reason === undefined ? undefined : { kind: 'known', reason });
  }

  markAbsent(cell: Cell): void {
    this.#outcomes.set(cellName(cell), { kind: 'absent' });
  }

  /**
   * Runs one scenario.
   * @throws what it throws, unless that is known; an Error when it works in spite of the list
   */
  async attempt(cell: Cell, work: () => Promise<void>): Promise<void> {
    const name = cellName(cell);
    const reason = this.#known.get(name);
    try {
      await work();
    } catch (error) {
      this.#outcomes.set(name, reason === undefined ? { kind: 'fails' } : { kind: 'known', reason });
      if (reason === undefined) throw error;
      return;
    }
    this.#outcomes.set(name, { kind: 'works' });
    if (reason !== undefined) throw new Error(`works now: take it off the list of known failures (${reason})`);
  }

  /** Entries of the list that no cell of this run has, because a row or a column was renamed. */
  unmet(): string[] {
    return [...this.#known.keys()].filter((name) => !this.#outcomes.has(name));
  }
}
