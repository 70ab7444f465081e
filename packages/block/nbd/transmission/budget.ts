/**
 * A bound on bytes that are in memory at one time. Requests that do not fit wait in order, while nothing is read from
 * their sockets.
 */
export class Budget {
  readonly #limit: number;
  #used = 0;
  #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** Takes so many bytes if there is room; whatever is asked for has room when nothing is in use. */
  take(bytes: number): boolean {
    if (this.#used > 0 && this.#used + bytes > this.#limit) return false;
    this.#used += bytes;
    return true;
  }

  /** Gives bytes back; then all who wait may try again, in order. */
  give(bytes: number): void {
    this.#used -= bytes;
    const waiting = this.#waiting;
    if (waiting.length === 0 || bytes === 0) return;
    this.#waiting = [];
    for (const retry of waiting) retry();
  }

  /** `retry` is called once, when bytes have been given back. */
  wait(retry: () => void): void {
    this.#waiting.push(retry);
  }
}
