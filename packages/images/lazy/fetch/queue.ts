import { MAX_RUN_PARTS, PARTS_PER_CHUNK } from '../geometry.ts';
import type { Priority } from './origin.ts';

/**
 * Fetches a run of parts; calls back for each part as soon as it has come. Resolves when all of them can be found where
 * they are kept.
 */
export type FetchRun = (first: number, count: number, arrived: (part: number, data: Buffer) => void) => Promise<void>;

interface Job {
  readonly part: number;
  priority: Priority;
  started: boolean;
  readonly result: PromiseWithResolvers<Buffer>;
  /** what has come is kept, and nothing of it is under way any more */
  readonly done: PromiseWithResolvers<void>;
}

/** The parts of one blob that are wanted or on their way, each only once. */
export class BlobQueue {
  readonly #queue: FetchQueue;
  readonly #fetch: FetchRun;
  readonly #jobs = new Map<number, Job>();
  readonly #runs = new Set<Promise<void>>();

  constructor(queue: FetchQueue, fetch: FetchRun) {
    this.#queue = queue;
    this.#fetch = fetch;
  }

  /** requests under way */
  get running(): number {
    return this.#runs.size;
  }

  has(part: number): boolean {
    return this.#jobs.has(part);
  }

  /** The bytes of a part, from a request that is made or from one that is under way. */
  want(part: number, priority: Priority): Promise<Buffer> {
    const known = this.#jobs.get(part);
    if (known !== undefined) {
      if (priority === 'foreground' && known.priority === 'background' && !known.started)
        this.#queue.raise(this, known);
      return known.result.promise;
    }
    const job: Job = { part, priority, started: false, result: Promise.withResolvers(), done: Promise.withResolvers() };
    // Whoever waits sees the failure; nobody has to wait.
    job.result.promise.catch(() => {});
    this.#jobs.set(part, job);
    this.#queue.add(this, job);
    return job.result.promise;
  }

  /** Resolves when none of these parts is on its way any more. */
  async settled(first: number, last: number): Promise<void> {
    const jobs = [...this.#jobs.values()].filter(({ part, started }) => started && part >= first && part <= last);
    await Promise.all(jobs.map(({ done }) => done.promise));
  }

  /** Resolves when nothing is wanted any more, and what has come is kept. */
  async idle(): Promise<void> {
    while (this.#jobs.size > 0) {
      await Promise.allSettled([...this.#runs, ...[...this.#jobs.values()].map(({ result }) => result.promise)]);
    }
  }

  /** Starts the job with the neighbours that are waiting too, as one request. */
  run(job: Job): Promise<void> {
    const run = this.#run(job).finally(() => this.#runs.delete(run));
    this.#runs.add(run);
    return run;
  }

  async #run(job: Job): Promise<void> {
    const chunk = Math.floor(job.part / PARTS_PER_CHUNK);
    const waiting = (part: number) => {
      const one = this.#jobs.get(part);
      return one !== undefined && !one.started && Math.floor(part / PARTS_PER_CHUNK) === chunk ? one : undefined;
    };
    const jobs = [job];
    for (let next = waiting(job.part + 1); next !== undefined && jobs.length < MAX_RUN_PARTS; ) {
      jobs.push(next);
      next = waiting(next.part + 1);
    }
    for (let next = waiting(job.part - 1); next !== undefined && jobs.length < MAX_RUN_PARTS; ) {
      jobs.unshift(next);
      next = waiting(next.part - 1);
    }
    for (const one of jobs) one.started = true;
    const first = jobs[0]?.part ?? job.part;
    try {
      await this.#fetch(first, jobs.length, (part, data) => jobs[part - first]?.result.resolve(data));
    } catch (error) {
      // Those that have come already are not changed by this.
      for (const one of jobs) one.result.reject(error);
    } finally {
      for (const one of jobs) {
        this.#jobs.delete(one.part);
        one.done.resolve();
      }
    }
  }
}

export interface QueueLimits {
  /** requests at the same time */
  readonly requests: number;
  /** those of them for one blob, so that a registry that does not answer does not stop all others */
  readonly perBlob: number;
  /** those of them that nobody waits for */
  readonly background: number;
}

/**
 * The order in which parts of all blobs are fetched: what a guest waits for first. Requests begin a moment after they are
 * asked for, so that neighbours find together.
 */
export class FetchQueue {
  readonly #limits: QueueLimits;
  readonly #waiting: Record<Priority, Set<readonly [BlobQueue, Job]>> = {
    foreground: new Set(),
    background: new Set(),
  };
  readonly #running: Record<Priority, number> = { foreground: 0, background: 0 };
  readonly #runs = new Set<Promise<void>>();
  #woken = false;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  add(blob: BlobQueue, job: Job): void {
    this.#waiting[job.priority].add([blob, job]);
    this.#wake();
  }

  /** Somebody waits now for what was wanted only in passing. */
  raise(blob: BlobQueue, job: Job): void {
    job.priority = 'foreground';
    // It stays in the other row too, where it will be found started.
    this.add(blob, job);
  }

  /** Resolves when nothing is under way and nothing waits. */
  async drained(): Promise<void> {
    while (this.#runs.size > 0 || this.#waiting.foreground.size > 0 || this.#waiting.background.size > 0) {
      await Promise.all([...this.#runs, Promise.resolve()]);
    }
  }

  #wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    queueMicrotask(() => {
      this.#woken = false;
      while (this.#startOne('foreground') || this.#startOne('background'));
    });
  }

  #startOne(priority: Priority): boolean {
    const total = this.#running.foreground + this.#running.background;
    if (total >= this.#limits.requests) return false;
    if (priority === 'background' && this.#running.background >= this.#limits.background) return false;
    for (const entry of this.#waiting[priority]) {
      const [blob, job] = entry;
      if (!job.started && blob.running >= this.#limits.perBlob) continue;
      this.#waiting[priority].delete(entry);
      if (job.started) continue;
      this.#running[priority]++;
      const run = blob.run(job).finally(() => {
        this.#running[priority]--;
        this.#runs.delete(run);
        this.#wake();
      });
      this.#runs.add(run);
      return true;
    }
    return false;
  }
}
