import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { PolledWatch } from './polled-watch.ts';

// Each has a process and an inotify instance of its own.
const WATCHERS_MAX = 256;

interface Closable {
  close(): void;
}

/** Everything that watches in this sandbox: what streams, and what is polled, by ids. */
export class Watchers {
  readonly #open = new Set<Closable>();
  readonly #polled = new Map<string, PolledWatch>();
  readonly #limit: number;
  #opening = 0;

  constructor(limit = WATCHERS_MAX) {
    this.#limit = limit;
  }

  /**
   * Opens one more; who takes it gives it back to `release`.
   * @throws AenvError `too_many_watches`; whatever `open` throws
   */
  async take<T extends Closable>(open: () => Promise<T>): Promise<T> {
    if (this.#open.size + this.#opening >= this.#limit) {
      throw new AenvError('too_many_watches', `there are ${this.#limit} watchers already`);
    }
    this.#opening += 1;
    try {
      const watch = await open();
      this.#open.add(watch);
      return watch;
    } finally {
      this.#opening -= 1;
    }
  }

  release(watch: Closable): void {
    watch.close();
    this.#open.delete(watch);
  }

  /** @returns the id under which it can be found from now on */
  keep(watch: PolledWatch): string {
    const id = `w${process.getBuiltinModule('node:crypto').randomBytes(10).toString('hex')}`;
    this.#polled.set(id, watch);
    return id;
  }

  /** @throws AenvError `watcher_not_found` */
  find(id: string): PolledWatch {
    const watch = this.#polled.get(id);
    if (watch === undefined) throw new AenvError('watcher_not_found', `watcher with id ${id} not found`);
    return watch;
  }

  /** @throws AenvError `watcher_not_found` */
  remove(id: string): void {
    this.release(this.find(id).source);
    this.#polled.delete(id);
  }

  close(): void {
    for (const watch of this.#open) watch.close();
  }
}
