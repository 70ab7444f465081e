import type { Clock } from '@aenv/platform/clock/clock.ts';
import { Repeater } from '@aenv/platform/clock/repeater.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { SandboxLedger } from '../../store/sandbox-ledger.ts';
import type { Ending } from '../ending.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { LiveSandboxes } from '../live/live-sandboxes.ts';
import type { Pausing } from '../pausing/pausing.ts';
import type { PausedLimits } from '../pausing/quota.ts';
import { comesBack } from '../shutdown/comeback.ts';

export interface ExpiryOptions {
  readonly ledger: SandboxLedger;
  readonly sandboxes: LiveSandboxes;
  readonly ending: Ending;
  readonly pausing: Pausing;
  readonly paused: PausedLimits;
  readonly keepEnded: { readonly days: number; readonly count: number };
  readonly clock: Clock;
  readonly log: Logger;
}

const SWEEP_MS = 1_000;
const PRUNE_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** A pause that was refused or failed is tried again after this. */
const RETRY_MS = 15_000;

/** Everything that time asks for: ends and pauses that are due, and rows that are old. Begins when it is made. */
export class Expiry {
  readonly #options: ExpiryOptions;
  readonly #sweep: Repeater;
  /** when a pause that did not succeed is tried again */
  readonly #retryAt = new WeakMap<LiveSandbox, number>();
  #nextPrune = 0;

  constructor(options: ExpiryOptions) {
    const { clock, log } = options;
    this.#options = options;
    this.#sweep = new Repeater({
      clock,
      intervalMs: SWEEP_MS,
      // What a round begins it does not wait for.
      work: async () => this.#round(),
      onError: (error) => log.error('a round of the expiry sweep failed', { error }),
    });
  }

  async close(): Promise<void> {
    await this.#sweep.close();
  }

  /** Each sandbox is looked at again here, right before it is ended. */
  #round(): void {
    const { clock, ending, pausing, sandboxes } = this.#options;
    const now = clock.now();
    ending.retryUnwritten();
    pausing.retryUnwritten();
    for (const live of sandboxes.all()) {
      if (live.busy) continue;
      if (live.lifecycle.state === 'paused' && this.#pausedTooLong(live, now)) void this.#forget(live);
      if (live.lifecycle.state !== 'running' || live.record.endAt.getTime() > now) continue;
      if ((this.#retryAt.get(live) ?? 0) <= now) void this.#expire(live);
    }
    if (now >= this.#nextPrune) {
      this.#nextPrune = now + PRUNE_MS;
      const { days, count } = this.#options.keepEnded;
      this.#options.ledger.prune(new Date(now - days * DAY_MS), count);
    }
  }

  /** For its client one runs that only a shutdown has paused, however long that was. */
  #pausedTooLong(live: LiveSandbox, now: number): boolean {
    const { pausedAt } = live.record;
    if (comesBack(live)) return false;
    const { ttlSeconds } = this.#options.paused;
    return ttlSeconds !== undefined && pausedAt !== undefined && pausedAt.getTime() + ttlSeconds * 1000 <= now;
  }

  /** What it was paused with goes. */
  async #forget(live: LiveSandbox): Promise<void> {
    await live.exclusive(async () => {
      if (live.lifecycle.state !== 'paused') return;
      await this.#options.ending.end(live, 'expired', 'it was paused for longer than paused.ttl_seconds');
    });
  }

  /** Its time is over: it is paused where that was asked for. Until that is possible it runs on. */
  async #expire(live: LiveSandbox): Promise<void> {
    const { ending, pausing, clock, log } = this.#options;
    if (live.record.onTimeout === 'kill') return await ending.end(live, 'expired');
    await live
      .exclusive(async () => {
        const due = live.record.endAt.getTime() <= clock.now();
        if (live.lifecycle.state === 'running' && due) await pausing.pause(live, { memory: live.record.pauseMemory });
      })
      .catch((error: unknown) => {
        this.#retryAt.set(live, clock.now() + RETRY_MS);
        log.error('a sandbox whose time is over could not be paused', { sandboxId: live.id, error });
      });
  }
}
