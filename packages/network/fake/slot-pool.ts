import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import { IndexRing } from '../addresses/index-ring.ts';
import type { EgressPolicy, SlotPool } from '../slots/contract.ts';

/** What happened to slots, in order. */
export type SlotEvent =
  | { readonly kind: 'acquired' | 'policy'; readonly index: number; readonly policy: EgressPolicy }
  | { readonly kind: 'released'; readonly index: number };

export interface FakeSlotPoolOptions {
  /** the most slots in use at one time; default 1,000 */
  readonly capacity?: number;
  /** owner of what a VM makes; default this process's, so that no root is needed */
  readonly uid?: number;
  /** second number of the addresses, for test files that run at the same time; default 77 */
  readonly network?: number;
}

/**
 * A pool for fast suites: slots are loopback addresses 127.77.x.y, which every Linux host answers on, and there is no
 * namespace. Policies are recorded and have no effect.
 */
export class FakeSlotPool implements SlotPool {
  readonly events: SlotEvent[] = [];
  readonly #indices: IndexRing;
  readonly #uid: number;
  readonly #network: number;
  readonly #inUse = new Map<NetworkSlot, EgressPolicy>();
  #closed = false;

  constructor(options: FakeSlotPoolOptions = {}) {
    this.#indices = new IndexRing(options.capacity ?? 1_000);
    this.#uid = options.uid ?? process.getuid?.() ?? 0;
    this.#network = options.network ?? 77;
  }

  async acquire(policy: EgressPolicy, signal?: AbortSignal): Promise<NetworkSlot> {
    signal?.throwIfAborted();
    if (this.#closed) throw new AenvError('shutting_down', 'the network is shutting down');
    const index = this.#indices.take();
    if (index === undefined) {
      throw new AenvError('network_exhausted', `all ${this.#indices.capacity} network slots are in use`);
    }
    const slot: NetworkSlot = {
      index,
      netns: '/proc/self/ns/net',
      tap: 'tap0',
      hostAddress: `127.${this.#network}.${index >> 8}.${index & 0xff}`,
      uid: this.#uid,
    };
    this.#inUse.set(slot, policy);
    this.events.push({ kind: 'acquired', index, policy });
    return slot;
  }

  async setPolicy(slot: NetworkSlot, policy: EgressPolicy): Promise<void> {
    if (!this.#inUse.has(slot)) {
      throw new AenvError('sandbox_not_running', `network slot ${slot.index} is not in use any more`);
    }
    this.#inUse.set(slot, policy);
    this.events.push({ kind: 'policy', index: slot.index, policy });
  }

  async release(slot: NetworkSlot): Promise<void> {
    if (!this.#inUse.delete(slot)) return;
    this.#indices.give(slot.index);
    this.events.push({ kind: 'released', index: slot.index });
  }

  stats(): { readonly ready: number; readonly inUse: number } {
    return { ready: this.#indices.free, inUse: this.#inUse.size };
  }

  policyOf(slot: NetworkSlot): EgressPolicy | undefined {
    return this.#inUse.get(slot);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const slot of [...this.#inUse.keys()]) await this.release(slot);
  }
}
