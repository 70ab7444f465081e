import { type Cidr, formatIpv4 } from './ipv4.ts';

/** Each slot has a /30 of the instance's range: network, host end, slot end, broadcast. */
export const SLOT_PREFIX = 30;
const BLOCK = 4;

export interface SlotAddresses {
  /** of the veth end in the host */
  readonly gateway: string;
  /** of the veth end in the namespace, which the host dials to reach the guest */
  readonly slot: string;
}

/** The address that the DNS forwarder of this instance listens on: block 0 belongs to no slot. */
export function dnsAddressOf(range: Cidr): string {
  return formatIpv4(range.first + 1);
}

/** Slots have the indices 1 to this number. */
export function slotCapacity(range: Cidr): number {
  return (range.last - range.first + 1) / BLOCK - 1;
}

export function slotAddresses(range: Cidr, index: number): SlotAddresses {
  if (!Number.isInteger(index) || index < 1 || index > slotCapacity(range)) {
    throw new RangeError(`slot index ${index} is not within the range`);
  }
  const base = range.first + index * BLOCK;
  return { gateway: formatIpv4(base + 1), slot: formatIpv4(base + 2) };
}

/** What to add to slot indices so that all ranges of a pool together count their slots without a clash. */
export function uidOffset(pool: Cidr, range: Cidr): number {
  return (range.first - pool.first) / BLOCK;
}
