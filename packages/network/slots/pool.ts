import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Gauge, Histogram, Metrics } from '@aenv/platform/observability/metrics.ts';
import { IndexRing } from '../addresses/index-ring.ts';
import type { EgressPolicy, SlotPool } from './contract.ts';
import { INITIAL_POLICY, type SlotMaker } from './slot-maker.ts';

export interface WatermarkPoolOptions {
  readonly maker: SlotMaker;
  /** the most slots at one time */
  readonly capacity: number;
  /** so many are kept ready also while slots are being asked for, built one at a time then */
  readonly low: number;
  /** so many are made ready while nobody asks for one; at least `low` */
  readonly high: number;
  /** slots built at the same time for those who wait, or while nobody asks for one */
  readonly concurrency?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

interface Lease {
  readonly slot: NetworkSlot;
  policy: EgressPolicy;
  /** policy changes of this slot, one after the other: the last one asked for wins */
  changes: Promise<void>;
  releasing: Promise<void> | undefined;
}

interface Waiter {
  give(lease: Lease): void;
  fail(error: unknown): void;
}

const RETRY_MS = { first: 500, most: 30_000 };

/** Whoever was given a slot starts a sandbox now, and needs the processors that building slots would take from it. */
const QUIET_MS = 2_000;

/** The slot pool: builds ahead of demand and, as far as it can, off the way of starts; never hands a used slot on. */
export class WatermarkPool implements SlotPool {
  readonly #options: WatermarkPoolOptions;
  readonly #indices: IndexRing;
  readonly #ready: NetworkSlot[] = [];
  /** by the slot's address */
  readonly #leases = new Map<string, Lease>();
  readonly #released = new WeakSet<NetworkSlot>();
  readonly #waiters: Waiter[] = [];
  readonly #builds = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #gauge: Gauge;
  readonly #buildTime: Histogram;
  #asked = 0;
  /** whether somebody has asked for a slot just now */
  #demanded = false;
  #retryMs: number = RETRY_MS.first;
  #pausedUntilRetry = false;
  #closed: Promise<void> | undefined;

  constructor(options: WatermarkPoolOptions) {
    this.#options = options;
    this.#indices = new IndexRing(options.capacity);
    this.#gauge = options.metrics.gauge('aenv_network_slots', 'Network slots by state', ['state']);
    this.#buildTime = options.metrics.histogram(
      'aenv_network_slot_build_seconds',
      'Time to build a network slot',
      [0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    );
  }

  /** Starts the first fill in the background. */
  start(): void {
    this.#pump();
  }

  /**
   * Takes over a slot in which a VM of an earlier daemon runs; it is in use from then on. To be called before `start`.
   * @throws AenvError `network_exhausted` when there is no such number, `host_command_failed` when the slot is not whole
   */
  async adopt(index: number, policy: EgressPolicy): Promise<NetworkSlot> {
    if (!this.#indices.claim(index)) throw new AenvError('network_exhausted', `there is no network slot ${index}`);
    try {
      const slot = await this.#options.maker.adopt(index, policy);
      this.#lease(slot).policy = policy;
      return slot;
    } catch (error) {
      this.#indices.give(index);
      throw error;
    }
  }

  async acquire(policy: EgressPolicy, signal?: AbortSignal): Promise<NetworkSlot> {
    signal?.throwIfAborted();
    if (this.#closed !== undefined) throw shuttingDown();
    this.#onDemand();
    const ready = this.#ready.shift();
    const lease = ready === undefined ? await this.#wait(signal) : this.#lease(ready);
    this.#pump();
    try {
      await this.#change(lease, policy);
      signal?.throwIfAborted();
      if (this.#closed !== undefined) throw shuttingDown();
    } catch (error) {
      await this.release(lease.slot).catch((failure: unknown) =>
        this.#logFailure('could not remove a network slot', failure),
      );
      throw error;
    }
    return lease.slot;
  }

  async setPolicy(slot: NetworkSlot, policy: EgressPolicy): Promise<void> {
    const lease = this.#leases.get(slot.hostAddress);
    if (lease === undefined || lease.slot !== slot || lease.releasing !== undefined) {
      throw new AenvError('sandbox_not_running', `network slot ${slot.index} is not in use any more`);
    }
    await this.#change(lease, policy);
  }

  async release(slot: NetworkSlot): Promise<void> {
    if (this.#released.has(slot)) return;
    const lease = this.#leases.get(slot.hostAddress);
    if (lease === undefined) return;
    // A copy cannot be told from an earlier user of the same address, whose slot is gone.
    if (lease.slot !== slot) throw new AenvError('internal', 'release() takes the slot object that acquire() gave');
    lease.releasing ??= this.#destroy(lease);
    await lease.releasing;
  }

  stats(): { readonly ready: number; readonly inUse: number } {
    return { ready: this.#ready.length, inUse: this.#leases.size };
  }

  /** The policy of the slot with this address while it is in use. */
  policyOf(address: string): EgressPolicy | undefined {
    const lease = this.#leases.get(address);
    return lease?.releasing === undefined ? lease?.policy : undefined;
  }

  async close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    await this.#closed;
  }

  /** Resolves when no build is under way; for tests and orderly starts. */
  async settled(): Promise<void> {
    while (this.#builds.size > 0) await Promise.all(this.#builds);
  }

  async #shutDown(): Promise<void> {
    this.#closing.abort(shuttingDown());
    for (const waiter of this.#waiters.splice(0)) waiter.fail(shuttingDown());
    await this.settled();
    const leases = [...this.#leases.values()];
    const ready = this.#ready.splice(0);
    await this.#options.maker.destroy(ready);
    for (const slot of ready) this.#indices.give(slot.index);
    const results = await Promise.allSettled(leases.map((lease) => this.release(lease.slot)));
    this.#report();
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  #lease(slot: NetworkSlot): Lease {
    const lease: Lease = { slot, policy: INITIAL_POLICY, changes: Promise.resolve(), releasing: undefined };
    this.#leases.set(slot.hostAddress, lease);
    return lease;
  }

  async #wait(signal: AbortSignal | undefined): Promise<Lease> {
    const { promise, resolve, reject } = Promise.withResolvers<Lease>();
    const waiter: Waiter = { give: resolve, fail: reject };
    const onAbort = () => {
      const at = this.#waiters.indexOf(waiter);
      if (at >= 0) this.#waiters.splice(at, 1);
      reject(signal?.reason);
    };
    if (this.#indices.free === 0 && this.#builds.size <= this.#waiters.length) {
      throw new AenvError('network_exhausted', `all ${this.#indices.capacity} network slots are in use`);
    }
    this.#waiters.push(waiter);
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#pump();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Starts as many builds as waiters and watermarks ask for. */
  #pump(): void {
    this.#report();
    if (this.#closed !== undefined) return;
    const { low, high, concurrency = 2 } = this.#options;
    const goal = this.#demanded ? low : Math.max(low, high);
    const ahead = this.#pausedUntilRetry ? 0 : Math.max(goal - this.#ready.length, 0);
    const waiting = this.#waiters.length;
    const atOnce = this.#demanded ? Math.min(concurrency, Math.max(waiting, 1)) : concurrency;
    while (this.#builds.size < Math.min(atOnce, waiting + ahead)) {
      const index = this.#indices.take();
      if (index === undefined) return;
      const build = this.#build(index).finally(() => {
        this.#builds.delete(build);
        this.#pump();
      });
      this.#builds.add(build);
    }
  }

  /** Counts asks instead of reading the clock, which somebody may set. */
  #onDemand(): void {
    this.#asked += 1;
    if (this.#demanded) return;
    this.#demanded = true;
    this.#untilQuiet().then(
      () => {
        this.#demanded = false;
        this.#pump();
      },
      () => {},
    );
  }

  async #untilQuiet(): Promise<void> {
    for (let asked = 0; asked !== this.#asked; ) {
      asked = this.#asked;
      await this.#options.clock.sleep(QUIET_MS, this.#closing.signal);
    }
  }

  async #build(index: number): Promise<void> {
    const started = performance.now();
    let slot: NetworkSlot;
    try {
      slot = await this.#options.maker.build(index);
    } catch (error) {
      this.#indices.give(index);
      this.#onBuildFailure(error);
      return;
    }
    this.#buildTime.observe((performance.now() - started) / 1000);
    this.#retryMs = RETRY_MS.first;
    const waiter = this.#waiters.shift();
    if (waiter === undefined) this.#ready.push(slot);
    else waiter.give(this.#lease(slot));
  }

  /** Whoever waits learns of it; building ahead of demand pauses, longer each time. */
  #onBuildFailure(error: unknown): void {
    this.#logFailure('could not build a network slot', error);
    this.#waiters.shift()?.fail(error);
    if (this.#pausedUntilRetry) return;
    this.#pausedUntilRetry = true;
    const delay = this.#retryMs;
    this.#retryMs = Math.min(2 * delay, RETRY_MS.most);
    this.#options.clock.sleep(delay, this.#closing.signal).then(
      () => {
        this.#pausedUntilRetry = false;
        this.#pump();
      },
      () => {},
    );
  }

  #change(lease: Lease, policy: EgressPolicy): Promise<void> {
    const change = lease.changes.then(async () => {
      if (lease.policy.internet === policy.internet) return;
      // While the rules change, the narrower of both policies counts for the forwarder.
      const previous = lease.policy;
      lease.policy = { internet: false };
      try {
        await this.#options.maker.apply(lease.slot, policy);
        lease.policy = policy;
      } catch (error) {
        lease.policy = previous;
        throw error;
      }
    });
    lease.changes = change.catch(() => {});
    return change;
  }

  async #destroy(lease: Lease): Promise<void> {
    try {
      await lease.changes;
      await this.#options.maker.destroy([lease.slot]);
    } catch (error) {
      // It stays on the books, so that its index is not used and release can be tried again.
      lease.releasing = undefined;
      throw error;
    }
    this.#leases.delete(lease.slot.hostAddress);
    this.#released.add(lease.slot);
    this.#indices.give(lease.slot.index);
    this.#pump();
  }

  #report(): void {
    this.#gauge.set(this.#ready.length, { state: 'ready' });
    this.#gauge.set(this.#leases.size, { state: 'in_use' });
  }

  #logFailure(message: string, error: unknown): void {
    const failure = AenvError.from(error, message);
    this.#options.log.warn(message, { code: failure.code, reason: failure.message });
  }
}

function shuttingDown(): AenvError {
  return new AenvError('shutting_down', 'the network is shutting down');
}
