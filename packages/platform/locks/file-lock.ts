import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../clock/clock.ts';

/** Held until it is disposed of, or until the process ends, however it does. */
export type Hold = Disposable;

const POLL_MS = 10;
/** SQLITE_BUSY */
const BUSY = 5;

/**
 * A lock that processes of this host share, in a file: held by many, or by one alone. Node has no file locks; SQLite has,
 * and the kernel frees them when their holder dies. Waiting does not block the process.
 */
export class FileLock {
  readonly #path: string;
  readonly #clock: Clock;

  /** @param path of a file of its own; it and its folder are made */
  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** Waits as long as somebody has it alone. @throws the signal's reason */
  async shared(signal?: AbortSignal): Promise<Hold> {
    for (;;) {
      const hold = await this.#take('shared');
      if (hold !== undefined) return hold;
      await this.#clock.sleep(POLL_MS, signal);
    }
  }

  /** @returns undefined when others still have it after `waitMs` */
  async exclusive(waitMs: number, signal?: AbortSignal): Promise<Hold | undefined> {
    for (let waited = 0; ; waited += POLL_MS) {
      const hold = await this.#take('exclusive');
      if (hold !== undefined || waited >= waitMs) return hold;
      await this.#clock.sleep(POLL_MS, signal);
    }
  }

  async #take(kind: 'shared' | 'exclusive'): Promise<Hold | undefined> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o755 });
    const database = new DatabaseSync(this.#path, { timeout: 0 });
    try {
      // Nothing is ever written, so no journal is left beside it.
      database.exec('PRAGMA journal_mode = MEMORY');
      database.exec(kind === 'shared' ? 'BEGIN' : 'BEGIN EXCLUSIVE');
      if (kind === 'shared') database.prepare('SELECT count(*) FROM sqlite_schema').get();
      return { [Symbol.dispose]: () => database.isOpen && database.close() };
    } catch (error) {
      database.close();
      if (error instanceof Error && 'errcode' in error && error.errcode === BUSY) return undefined;
      throw error;
    }
  }
}
