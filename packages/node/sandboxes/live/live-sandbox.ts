import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { RouteTarget } from '../../proxy/contract.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';
import type { Template } from '../../templates/contract.ts';
import { INITIAL, type Lifecycle, type LifecycleEvent, transition } from '../lifecycle/state.ts';

/**
 * A sandbox that this daemon holds parts of. Its state changes only between two awaits and is looked at right before:
 * the event loop itself puts the operations on one sandbox in a row, and none acts on what it saw before it waited.
 */
export class LiveSandbox {
  readonly template: Template;
  /** undoes all that the sandbox holds of the host, in reverse */
  readonly resources = new Rollback();
  /** resolves when nothing of it is left */
  readonly gone: Promise<void>;
  /** the row as it was last written */
  record: SandboxRecord;
  /** where traffic goes, while it runs */
  target: RouteTarget | undefined;
  /** what could not be removed */
  releaseError: unknown;
  readonly #abort = new AbortController();
  readonly #resolveGone: () => void;
  #lifecycle: Lifecycle = INITIAL;

  constructor(record: SandboxRecord, template: Template) {
    this.record = record;
    this.template = template;
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
