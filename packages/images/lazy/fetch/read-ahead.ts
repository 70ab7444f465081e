import { MAX_RUN_PARTS } from '../geometry.ts';

/** The longest stretch that is fetched ahead of a reader, in parts: 4 MiB. */
const MAX_WINDOW = 4 * MAX_RUN_PARTS;
/** Readers at different places of one blob that are remembered. */
const MAX_STREAKS = 16;

/**
 * How far a read that misses goes beyond what was asked for. Who comes to the end of what was fetched ahead gets twice as
 * much the next time; who jumps gets nothing.
 */
export class ReadAhead {
  /** windows by the part that comes after them */
  readonly #streaks = new Map<number, number>();

  /**
   * @param first part that is missing
   * @param follows whether the part before it is there
   * @returns the part up to which to fetch, itself not included; `first` for nothing ahead
   */
  upTo(first: number, follows: boolean): number {
    const before = this.#streaks.get(first);
    if (before === undefined && !follows) return first;
    this.#streaks.delete(first);
    const window = Math.min(MAX_WINDOW, before === undefined ? MAX_RUN_PARTS : 2 * before);
    const end = first + window;
    this.#streaks.set(end, window);
    const [oldest] = this.#streaks.keys();
    if (this.#streaks.size > MAX_STREAKS && oldest !== undefined) this.#streaks.delete(oldest);
    return end;
  }
}
