import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { RouteTarget } from '../../proxy/contract.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';
import type { Machine } from '../checkpoints/contract.ts';
import { INITIAL, type Lifecycle, type LifecycleEvent, transition } from '../lifecycle/state.ts';

/**
 * A sandbox that this daemon holds parts of. Its state changes only between two awaits and is looked at right before, so
 * that nobody acts on what he saw before he waited. Pause, resume, snapshot and end take turns (`exclusive`).
 */
export class LiveSandbox {
  /** undoes all that the sandbox holds of the host, in reverse */
  readonly resources: Rollback;
  /** resolves when nothing of it is left */
  readonly gone: Promise<void>;
  /** the row as it was last written */
  record: SandboxRecord;
  /** its VM and disk, while it has them */
  machine: Machine | undefined;
  /** where traffic goes, while it runs */
  target: RouteTarget | undefined;
  /** what could not be removed */
  releaseError: unknown;
  readonly #resolveGone: () => void;
  #abort = new AbortController();
  #lifecycle: Lifecycle;
  #operations = 0;
  #servings = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(record: SandboxRecord, lifecycle: Lifecycle = INITIAL, resources = new Rollback()) {
    this.record = record;
    this.resources = resources;
    this.#lifecycle = lifecycle;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.gone = promise;
    this.#resolveGone = resolve;
  }

  get id(): string {
    return this.record.sandboxId;
  }

  get lifecycle(): Lifecycle {
    return this.#lifecycle;
  }

  /** Aborts when the sandbox is to end before it is up. */
  get startSignal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether an operation that takes time is under way. */
  get busy(): boolean {
    return this.#operations > 0;
  }

  /**
   * Runs operations one after the other, in the order in which they came; the first one begins at once. What the state
   * allows is for the operation to see when its turn comes.
   */
  async exclusive<T>(operation: () => Promise<T>): Promise<T> {
    const turn = this.#operations++ === 0 ? operation() : this.#last.then(operation);
    this.#last = turn.catch(() => {});
    try {
      return await turn;
    } finally {
      this.#operations--;
    }
  }

  /** Names a time in which its VM is served, for the proxy, to which none comes back. */
  nextServing(incarnation: string): string {
    this.#servings++;
    return this.#servings === 1 ? incarnation : `${incarnation}/${this.#servings}`;
  }

  /** For another start, when the one before is over. */
  renewStart(): void {
    this.#abort = new AbortController();
  }

  apply(event: LifecycleEvent): Lifecycle {
    this.#lifecycle = transition(this.#lifecycle, event);
    return this.#lifecycle;
  }

  cancelStart(reason: Error): void {
    this.#abort.abort(reason);
  }

  markGone(): void {
    this.#resolveGone();
  }
}
