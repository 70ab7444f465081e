import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Change } from './changes.ts';
import type { FilesystemEvent, ToEvent } from './events.ts';

// So many are kept for a client that does not ask; after that the kernel's queue fills, and then it overflows.
const EVENTS_MAX = 20_000;

/** Where changes come from: a TreeWatch. */
export interface ChangeSource {
  changes(): AsyncIterable<readonly Change[]>;
  /** calls back when `changes` has given all that has happened until now */
  mark(reached: () => void): void;
  close(): void;
}

/** Collects the events of a watched folder until somebody asks for them. */
export class PolledWatch {
  readonly source: ChangeSource;
  readonly #toEvent: ToEvent;
  readonly #limit: number;
  readonly #waiting = new Set<() => void>();
  #events: FilesystemEvent[] = [];
  #taken: (() => void) | undefined;
  #end: { readonly error: unknown } | undefined;

  constructor(source: ChangeSource, toEvent: ToEvent, limit = EVENTS_MAX) {
    this.source = source;
    this.#toEvent = toEvent;
    this.#limit = limit;
    this.#collect().then(
      () => this.#finish(new AenvError('watcher_not_found', 'the watcher was removed')),
      (error: unknown) => this.#finish(error),
    );
  }

  /**
   * All events since the last call: whatever happened before this call is among them.
   * @throws AenvError, every time, when watching has ended and all events before that were taken: see TreeWatch.changes
   */
  async take(): Promise<FilesystemEvent[]> {
    await new Promise<void>((resolve) => {
      if (this.#end !== undefined || this.#events.length >= this.#limit) return resolve();
      this.#waiting.add(resolve);
      this.source.mark(() => {
        this.#waiting.delete(resolve);
        resolve();
      });
    });
    if (this.#events.length === 0 && this.#end !== undefined) throw this.#end.error;
    const events = this.#events;
    this.#events = [];
    this.#taken?.();
    return events;
  }

  async #collect(): Promise<void> {
    for await (const changes of this.source.changes()) {
      for (const change of changes) {
        this.#events.push(await this.#toEvent(change));
        while (this.#events.length >= this.#limit) await this.#room();
      }
    }
  }

  #room(): Promise<void> {
    this.#wake();
    return new Promise((resolve) => {
      this.#taken = resolve;
    });
  }

  #finish(error: unknown): void {
    this.#end = { error };
    this.source.close();
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
