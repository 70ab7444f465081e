import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Counter, Gauge, Metrics } from '@aenv/platform/observability/metrics.ts';
import type { Standing, WarmKey, WarmSandboxes } from './contract.ts';

export interface WarmPoolOptions {
  /** fewer ready ones of a template than this start a refill */
  readonly low: number;
  /** a refill ends at this many; 0 switches the pool off */
  readonly high: number;
  /** templates that are kept ready at a time, those that were asked for last */
  readonly templates: number;
  /** how long after the last create a template keeps more than `low`, or, unless it was asked for last, any; `ms` */
  readonly idleMs: number;
  /** see `WarmSandboxes` */
  readonly answerMs: number;
  /** @returns undefined for what never stands ready @throws why it cannot be made now */
  readonly prepare: (key: WarmKey, signal: AbortSignal) => Promise<Standing | undefined>;
  /** whether the host has the memory for one more */
  readonly hasRoom: (key: WarmKey) => boolean;
  /** forgets what a machine that was never used has left */
  readonly forget: (incarnation: string) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

interface Shelf {
  readonly key: WarmKey;
  readonly ready: Standing[];
  usedAt: number;
  filling: boolean;
  /** whether none can stand ready at all */
  unfit: boolean;
}

/** No create for so long before one is prepared: whoever creates sandboxes now needs the processors more. */
const QUIET_MS = 300;
const LOOK_MS = 1_000;
const RETRY_MS = 30_000;

/**
 * Sandboxes-to-be of the templates that are in use, made ahead of demand, one after the other, while no create is under
 * way. They are given away once and never taken back.
 */
export class WarmPool implements WarmSandboxes {
  readonly answerMs: number;
  readonly #options: WarmPoolOptions;
  /** by `nameOf`; the one that was asked for last comes last */
  readonly #shelves = new Map<string, Shelf>();
  readonly #closing = new AbortController();
  readonly #ready: Gauge;
  readonly #takes: Counter;
  readonly #loop: Promise<void>;
  #dropping: Promise<unknown> = Promise.resolve();
  #takenAt = Number.NEGATIVE_INFINITY;
  #retryAt = 0;

  constructor(options: WarmPoolOptions) {
    this.#options = options;
    this.answerMs = options.answerMs;
    this.#ready = options.metrics.gauge('aenv_warm_sandboxes', 'Machines that stand ready to become sandboxes.');
    this.#takes = options.metrics.counter(
      'aenv_warm_takes_total',
      'Creates from captured templates, by whether a machine stood ready.',
      ['result'],
    );
    this.#report();
    this.#loop = options.high > 0 ? this.#run() : Promise.resolve();
  }

  take(key: WarmKey): Standing | undefined {
    if (this.#options.high === 0) return undefined;
    this.#takenAt = this.#options.clock.now();
    const standing = this.#shelfOf(key)?.ready.shift();
    this.#takes.add(1, { result: standing === undefined ? 'miss' : 'hit' });
    this.#report();
    return standing;
  }

  async discard(standing: Standing, why: unknown): Promise<void> {
    const { incarnation } = standing.vm.record;
    this.#options.log.warn('a machine that stood ready did not become a sandbox', { incarnation, error: why });
    await this.#remove(standing);
  }

  /** Keeps machines ready for a template before anybody has asked for it. */
  want(key: WarmKey): void {
    if (this.#options.high > 0) this.#shelfOf(key);
  }

  /** Ends all that stand ready, and waits for one that is just being prepared. */
  async close(): Promise<void> {
    this.#closing.abort(new AenvError('shutting_down', 'the daemon is shutting down'));
    await this.#loop;
    for (const shelf of this.#shelves.values()) this.#shrink(shelf, 0);
    await this.#dropping;
    this.#report();
  }

  #shelfOf(key: WarmKey): Shelf | undefined {
    if (this.#closing.signal.aborted) return undefined;
    const name = nameOf(key);
    const shelf = this.#shelves.get(name) ?? { key, ready: [], usedAt: 0, filling: true, unfit: false };
    shelf.usedAt = this.#options.clock.now();
    this.#shelves.delete(name);
    this.#shelves.set(name, shelf);
    return shelf;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        this.#tidy();
        const next = this.#next();
        if (next === undefined) await clock.sleep(LOOK_MS, signal);
        else await this.#fill(next);
      } catch (error) {
        if (signal.aborted) return;
        this.#retryAt = clock.now() + RETRY_MS;
        log.warn('a sandbox could not be prepared ahead of demand', { error });
      }
    }
  }

  /** The shelf that lacks one, the last used first, if now is a time to fill it. */
  #next(): Shelf | undefined {
    const { clock, high, low, hasRoom } = this.#options;
    const now = clock.now();
    if (now < this.#retryAt || now < this.#takenAt + QUIET_MS) return undefined;
    for (const shelf of [...this.#shelves.values()].reverse()) {
      const goal = this.#isIdle(shelf) ? low : high;
      if (shelf.ready.length < low) shelf.filling = true;
      if (shelf.ready.length >= goal) shelf.filling = false;
      if (shelf.filling && !shelf.unfit && hasRoom(shelf.key)) return shelf;
    }
    return undefined;
  }

  async #fill(shelf: Shelf): Promise<void> {
    const standing = await this.#options.prepare(shelf.key, this.#closing.signal);
    if (standing === undefined) {
      shelf.unfit = true;
      return;
    }
    shelf.ready.push(standing);
    this.#report();
    const gone = () => {
      const at = shelf.ready.indexOf(standing);
      if (at < 0) return;
      shelf.ready.splice(at, 1);
      this.#options.log.warn('a machine that stood ready has ended', { incarnation: standing.vm.record.incarnation });
      this.#drop(standing);
    };
    // Also when nobody can say how it has ended.
    standing.vm.exited.then(gone, gone);
  }

  /** Templates that are not asked for any more give back what they hold. */
  #tidy(): void {
    const { low, templates } = this.#options;
    const shelves = [...this.#shelves.entries()].reverse();
    for (const [place, [name, shelf]] of shelves.entries()) {
      if (place >= templates || (place > 0 && this.#isIdle(shelf))) {
        this.#shelves.delete(name);
        this.#shrink(shelf, 0);
      } else if (this.#isIdle(shelf)) this.#shrink(shelf, low);
    }
  }

  #isIdle(shelf: Shelf): boolean {
    return this.#options.clock.now() - shelf.usedAt >= this.#options.idleMs;
  }

  #shrink(shelf: Shelf, size: number): void {
    for (const standing of shelf.ready.splice(size)) this.#drop(standing);
  }

  #drop(standing: Standing): void {
    this.#dropping = Promise.all([this.#dropping, this.#remove(standing)]);
    this.#report();
  }

  async #remove(standing: Standing): Promise<void> {
    const { forget, log } = this.#options;
    try {
      await standing.resources.run();
      await forget(standing.vm.record.incarnation);
    } catch (error) {
      log.error('parts of a machine that stood ready could not be removed', { error });
    }
  }

  #report(): void {
    this.#ready.set([...this.#shelves.values()].reduce((sum, { ready }) => sum + ready.length, 0));
  }
}

function nameOf({ checkpoint, cpuCount, memoryMb, diskSizeMb }: WarmKey): string {
  return [checkpoint, cpuCount, memoryMb, diskSizeMb].join(' ');
}
