import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { EgressPolicy } from '../contract.ts';
import { INITIAL_POLICY, type SlotMaker } from '../slot-maker.ts';

/** A maker whose slots exist only in memory and that can be told to fail or to wait. */
export class MemorySlotMaker implements SlotMaker {
  readonly existing = new Map<NetworkSlot, EgressPolicy>();
  readonly built: number[] = [];
  /** policies applied, in the order in which they took effect */
  readonly applied: EgressPolicy[] = [];
  buildError: unknown;
  destroyError: unknown;
  /** what build waits for */
  gate: Promise<void> = Promise.resolve();
  /** what apply waits for */
  applyGate: Promise<void> = Promise.resolve();
  building = 0;
  mostAtOnce = 0;

  async build(index: number): Promise<NetworkSlot> {
    this.building += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.building);
    try {
      await this.gate;
      if (this.buildError !== undefined) throw this.buildError;
    } finally {
      this.building -= 1;
    }
    const slot = slotOf(index);
    this.built.push(index);
    this.existing.set(slot, INITIAL_POLICY);
    return slot;
  }

  async adopt(index: number, policy: EgressPolicy): Promise<NetworkSlot> {
    const slot = slotOf(index);
    this.existing.set(slot, policy);
    return slot;
  }

  async apply(slot: NetworkSlot, policy: EgressPolicy): Promise<void> {
    await this.applyGate;
    this.existing.set(slot, policy);
    this.applied.push(policy);
  }

  async destroy(slots: readonly NetworkSlot[]): Promise<void> {
    if (this.destroyError !== undefined) throw this.destroyError;
    for (const slot of slots) this.existing.delete(slot);
  }
}

function slotOf(index: number): NetworkSlot {
  return { index, netns: `/${index}`, tap: 'tap0', hostAddress: `127.0.1.${index}`, uid: index };
}
