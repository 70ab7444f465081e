import { setImmediate as nextTurn } from 'node:timers/promises';

/** Bytes after which others get their turn: they are copied within a few milliseconds. */
const TURN = 8 * 1024 * 1024;

/** Turns of the event loop between copies that are made synchronously. */
export class Turns {
  #since = 0;

  /** Tells that so many bytes were copied. @returns what is to be waited for before more are, if anything */
  copied(bytes: number): undefined | Promise<void> {
    this.#since += bytes;
    if (this.#since < TURN) return undefined;
    this.#since = 0;
    return nextTurn();
  }
}
