import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';

/** What a sandbox may reach. The host's services, other sandboxes and metadata addresses are out of reach in any case. */
export interface EgressPolicy {
  readonly internet: boolean;
}

/** Slots kept ready between a low and a high watermark, and given to one sandbox at a time. */
export interface SlotPool {
  /**
   * A slot with this policy in force. Conntrack and rules of an earlier user are gone: a released slot is torn down,
   * never handed on.
   * @throws AenvError `network_exhausted`
   */
  acquire(policy: EgressPolicy, signal?: AbortSignal): Promise<NetworkSlot>;
  /** Changes what the sandbox in this slot may reach, also for open flows. */
  setPolicy(slot: NetworkSlot, policy: EgressPolicy): Promise<void>;
  /** Removes the slot's namespace, links and rules. Idempotent. */
  release(slot: NetworkSlot): Promise<void>;
  stats(): { readonly ready: number; readonly inUse: number };
  /** Removes everything that this pool made. */
  close(): Promise<void>;
}
