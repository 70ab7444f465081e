import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { OutputEvent, Subscription } from './subscription.ts';

/** When output waits, and for whom. */
export interface OutputLimits {
  /** bytes in the queue of a listener at which the process has to wait */
  readonly queueBytes: number;
  /** `ms` after which a listener that takes nothing is given up while others listen */
  readonly stalledMs: number;
  /** the same for the only listener */
  readonly stalledAloneMs: number;
  /** `ms` without output after the end, for a process whose children keep its pipes open */
  readonly quietMs: number;
}

export const DEFAULT_OUTPUT_LIMITS: OutputLimits = {
  queueBytes: 256 * 1024,
  stalledMs: 5_000,
  stalledAloneMs: 120_000,
  quietMs: 100,
};

// All that can still be in a pipe when its writer ends: the most that fcntl(2) lets a process make of it.
const PIPE_MAX = 1024 * 1024;

export interface OutputSource {
  readonly kind: 'stdout' | 'stderr' | 'pty';
  readonly stream: Readable;
}

/**
 * Carries the output of one process to its listeners. As long as some listener reads, the process waits for the slowest
 * of them, so none misses anything; a listener that has stopped reading is given up, and without listeners output is
 * thrown away, so the process never waits for good.
 */
export class Output {
  readonly #sources: readonly OutputSource[];
  readonly #limits: OutputLimits;
  readonly #listeners = new Set<Subscription>();
  #open: number;
  #paused = false;
  #stallTimer: NodeJS.Timeout | undefined;
  #lastData = 0;
  #afterEnd: number | undefined;
  #drained: (() => void) | undefined;

  constructor(sources: readonly OutputSource[], limits: OutputLimits) {
    this.#sources = sources;
    this.#limits = limits;
    this.#open = sources.length;
    for (const { kind, stream } of sources) {
      stream.on('data', (bytes: Buffer) => this.#take(kind, bytes));
      stream.once('close', () => this.#sourceClosed());
      stream.on('error', () => stream.destroy());
    }
  }

  get listeners(): ReadonlySet<Subscription> {
    return this.#listeners;
  }

  add(listener: Subscription): void {
    this.#listeners.add(listener);
  }

  remove(listener: Subscription): void {
    this.#listeners.delete(listener);
    this.#adjust();
  }

  /** To be called when a listener has taken something. */
  taken(listener: Subscription): void {
    if (this.#paused && listener.size <= this.#limits.queueBytes / 2) this.#adjust();
  }

  /**
   * Resolves when everything that the process wrote has been handed to the listeners. To be called when it has ended:
   * then the pipes are at their end, or quiet, or have given more than can have been in them.
   */
  drained(): Promise<void> {
    this.#afterEnd = 0;
    this.#lastData = performance.now();
    return new Promise((resolve) => {
      this.#drained = resolve;
      if (this.#open === 0) this.#finish();
      else this.#watchQuiet();
    });
  }

  #take(kind: OutputSource['kind'], bytes: Buffer): void {
    this.#lastData = performance.now();
    const event: OutputEvent = { kind, bytes };
    for (const listener of this.#listeners) listener.push(event);
    if (this.#afterEnd !== undefined) {
      this.#afterEnd += bytes.length;
      if (this.#afterEnd > PIPE_MAX * this.#sources.length) this.#finish();
    }
    this.#adjust();
  }

  #adjust(): void {
    const limit = this.#limits.queueBytes;
    let full = false;
    for (const listener of this.#listeners) full ||= listener.size >= (this.#paused ? limit / 2 : limit);
    if (full === this.#paused) return;
    this.#paused = full;
    for (const { stream } of this.#sources) {
      if (full) stream.pause();
      else stream.resume();
    }
    clearTimeout(this.#stallTimer);
    if (full) this.#watchStall();
    else this.#lastData = performance.now();
  }

  #watchStall(): void {
    const alone = this.#listeners.size === 1;
    const allowed = alone ? this.#limits.stalledAloneMs : this.#limits.stalledMs;
    const now = performance.now();
    let wait = allowed;
    for (const listener of [...this.#listeners]) {
      if (listener.size < this.#limits.queueBytes / 2) continue;
      const left = listener.lastTaken + allowed - now;
      if (left <= 0) listener.close('stalled');
      else wait = Math.min(wait, left);
    }
    if (!this.#paused) return;
    this.#stallTimer = setTimeout(() => this.#watchStall(), Math.max(wait, 10));
    this.#stallTimer.unref();
  }

  #watchQuiet(): void {
    setTimeout(() => {
      // What came in while this process itself was busy has to be read before silence means anything.
      setImmediate(() => {
        if (this.#drained === undefined) return;
        const quiet = performance.now() - this.#lastData >= this.#limits.quietMs;
        if (quiet && !this.#paused) this.#finish();
        else this.#watchQuiet();
      });
    }, this.#limits.quietMs / 2);
  }

  #sourceClosed(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#finish();
  }

  /** Children that are still there may go on writing: nobody hears them, but they are not to die of a broken pipe. */
  #finish(): void {
    const resolve = this.#drained;
    this.#drained = undefined;
    this.#afterEnd = undefined;
    for (const { stream } of this.#sources) if (stream instanceof Socket) stream.unref();
    resolve?.();
  }
}
