import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { SandboxLedger } from '../store/sandbox-ledger.ts';
import { LIVE_STATES } from '../store/sandbox-record.ts';
import type { Checkpoints } from './checkpoints/contract.ts';
import type { SerialLogs } from './launch/serial-logs.ts';
import type { EndRequest, Lifecycle } from './lifecycle/state.ts';
import { Gate } from './limits/gate.ts';
import type { LiveSandbox } from './live/live-sandbox.ts';
import type { LiveSandboxes } from './live/live-sandboxes.ts';
import type { SandboxMetrics } from './metrics.ts';
import type { SandboxObserver } from './observe/contract.ts';

export interface EndingOptions {
  readonly sandboxes: LiveSandboxes;
  readonly ledger: SandboxLedger;
  readonly serialLogs: SerialLogs;
  readonly checkpoints: Pick<Checkpoints, 'remove'>;
  readonly observer: SandboxObserver;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: SandboxMetrics;
}

/** Releases that run at the same time; each tears down a namespace, and the kernel does that one by one anyway. */
const CONCURRENT_RELEASES = 8;
const MAX_MESSAGE = 2000;
const never = new AbortController().signal;

/**
 * How sandboxes end. Traffic goes first, then the parts of the host in reverse, then the row becomes final. A ledger
 * that cannot be written (a full disk) stops no release: the row is written again later.
 */
export class Ending {
  readonly #options: EndingOptions;
  readonly #gate = new Gate({ concurrency: CONCURRENT_RELEASES, maxQueue: Number.POSITIVE_INFINITY });
  readonly #unwritten = new Set<LiveSandbox>();

  constructor(options: EndingOptions) {
    this.#options = options;
  }

  /**
   * Ends a sandbox that runs, starts or is paused. Traffic is cut before this returns; resolves when nothing of it is
   * left.
   * @param message what the ledger says beside the reason
   */
  async end(live: LiveSandbox, reason: EndRequest, message?: string): Promise<void> {
    const starting = live.lifecycle.state === 'creating' || live.lifecycle.state === 'resuming';
    const { checkpoint } = live.record;
    if (checkpoint !== undefined) live.resources.addFirst(() => this.#options.checkpoints.remove(checkpoint.id));
    live.apply({ type: 'end', reason });
    this.#options.sandboxes.withdraw(live);
    this.#options.observer.ending(live.id);
    this.#options.metrics.observeStates(this.#options.sandboxes);
    this.#write(live, () => this.#options.ledger.update(live.id, LIVE_STATES, { state: 'killing' }));
    if (starting) {
      // Whoever starts it releases it: only there is known what has been taken.
      live.cancelStart(
        reason === 'shutdown'
          ? new AenvError('shutting_down', `sandbox '${live.id}' was ended while it started: the daemon shuts down`)
          : new AenvError('sandbox_not_running', `sandbox '${live.id}' was deleted while it started`),
      );
      return live.gone;
    }
    await this.release(live, message);
  }

  /** The VM went by itself. */
  async lose(live: LiveSandbox, message: string): Promise<void> {
    live.apply({ type: 'vm_died', message: message.slice(-MAX_MESSAGE) });
    this.#options.sandboxes.withdraw(live);
    this.#options.log.warn('sandbox lost', { sandboxId: live.id, reason: 'vm_died', message });
    this.#finish(live);
    await this.release(live);
  }

  /**
   * Gives back all that the sandbox holds, then makes it final.
   * @param message of the start that failed, when it was that; else what there is to say of the end
   */
  async release(live: LiveSandbox, message?: string): Promise<void> {
    const { log, metrics, sandboxes } = this.#options;
    try {
      await this.#gate.run(() => live.resources.run(), never);
      await this.#tidyLogs(live);
    } catch (error) {
      live.releaseError = error;
      metrics.releaseFailed();
      log.error('parts of a sandbox could not be removed', { sandboxId: live.id, error });
    }
    if (live.lifecycle.state === 'creating') {
      live.apply({ type: 'failed', message: (message ?? 'failed').slice(-MAX_MESSAGE) });
      this.#finish(live);
    } else if (live.lifecycle.state === 'killing') {
      live.apply({ type: 'released', ...(message === undefined ? {} : { message: message.slice(-MAX_MESSAGE) }) });
      this.#finish(live);
    }
    if (!this.#unwritten.has(live)) sandboxes.delete(live);
    metrics.observeStates(sandboxes);
    live.markGone();
  }

  /** Writes the final rows that could not be written before. */
  retryUnwritten(): void {
    for (const live of this.#unwritten) {
      const { lifecycle } = live;
      if (lifecycle.state !== 'ended' && lifecycle.state !== 'lost') continue;
      if (!this.#writeFinal(live, lifecycle)) return;
      this.#unwritten.delete(live);
      void live.gone.then(() => this.#options.sandboxes.delete(live));
    }
  }

  /** The console of a VM is of use only when it failed; the last of those are kept. */
  async #tidyLogs(live: LiveSandbox): Promise<void> {
    const { serialLogs, sandboxes } = this.#options;
    const { incarnation } = live.record;
    if (incarnation === undefined) return;
    if (live.lifecycle.state === 'killing') return serialLogs.discard(incarnation);
    const others = sandboxes.all().map((other) => (other === live ? '' : (other.record.incarnation ?? '')));
    await serialLogs.prune(new Set(others));
  }

  /** The sandbox has just become final. */
  #finish(live: LiveSandbox): void {
    const { lifecycle } = live;
    if (lifecycle.state !== 'ended' && lifecycle.state !== 'lost') return;
    this.#options.metrics.ended(lifecycle.reason);
    this.#options.observer.over(live.id, lifecycle.state, lifecycle.reason, lifecycle.message);
    this.#options.log.info('sandbox over', { sandboxId: live.id, state: lifecycle.state, reason: lifecycle.reason });
    if (!this.#writeFinal(live, lifecycle)) this.#unwritten.add(live);
  }

  #writeFinal(live: LiveSandbox, final: Extract<Lifecycle, { state: 'ended' | 'lost' }>): boolean {
    return this.#write(live, () =>
      this.#options.ledger.update(live.id, LIVE_STATES, {
        state: final.state,
        endReason: final.reason,
        ...(final.message === undefined ? {} : { endMessage: final.message }),
        endedAt: new Date(this.#options.clock.now()),
        slotIndex: null,
        netns: null,
        volumeId: null,
        vm: null,
        boot: null,
        checkpoint: null,
      }),
    );
  }

  /** @returns whether it is written */
  #write(live: LiveSandbox, update: () => LiveSandbox['record'] | undefined): boolean {
    try {
      live.record = update() ?? live.record;
      return true;
    } catch (error) {
      // Once is enough: the row is tried again every second.
      if (!this.#unwritten.has(live)) {
        this.#options.log.error('the end of a sandbox could not be written yet', { sandboxId: live.id, error });
      }
      return false;
    }
  }
}
