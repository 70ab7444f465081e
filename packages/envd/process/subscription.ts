/** One event of a process, as it goes to those who listen. */
export type OutputEvent =
  | { readonly kind: 'stdout' | 'stderr' | 'pty'; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly report: import('./exit-status.ts').EndReport };

/** Why a subscription gives no more events. */
export type CloseReason = 'ended' | 'left' | 'stalled' | 'deadline';

/**
 * The queue of one listener of a process. It is filled without waiting; its owner looks at `size` to slow the process
 * down, and at `lastTaken` to see a listener that does not listen.
 */
export class Subscription {
  /** bytes that wait to be taken */
  size = 0;
  /** when something was last taken, `ms` of the monotonic clock */
  lastTaken = performance.now();
  /** set when there is nothing more to come */
  closed: CloseReason | undefined;
  readonly #events: OutputEvent[] = [];
  readonly #onTaken: (subscription: Subscription) => void;
  readonly #onClose: (subscription: Subscription) => void;
  #wake: (() => void) | undefined;

  constructor(onTaken: (subscription: Subscription) => void, onClose: (subscription: Subscription) => void) {
    this.#onTaken = onTaken;
    this.#onClose = onClose;
  }

  push(event: OutputEvent): void {
    if (this.closed !== undefined) return;
    if (this.#events.length === 0) this.lastTaken = performance.now();
    this.#events.push(event);
    if (event.kind !== 'end') this.size += event.bytes.length;
    this.#wake?.();
  }

  /**
   * The next event; `idle` when there was none for `idleMs`; undefined at the end. What is queued comes first if the
   * process has ended, and is dropped if the listener is to go.
   */
  async next(idleMs: number): Promise<OutputEvent | 'idle' | undefined> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) {
        if (event.kind !== 'end') this.size -= event.bytes.length;
        this.lastTaken = performance.now();
        this.#onTaken(this);
        return event;
      }
      if (this.closed !== undefined) return undefined;
      if (await this.#sleep(idleMs)) return 'idle';
    }
  }

  close(reason: CloseReason): void {
    if (this.closed !== undefined) return;
    this.closed = reason;
    if (reason !== 'ended') {
      this.#events.length = 0;
      this.size = 0;
    }
    this.#wake?.();
    this.#onClose(this);
  }

  /** Whether the time ran out before anything happened. */
  #sleep(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wake = undefined;
        resolve(true);
      }, ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve(false);
      };
    });
  }
}
