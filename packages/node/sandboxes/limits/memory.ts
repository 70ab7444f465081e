import { readFileSync } from 'node:fs';

/** Reads the memory that the host can give without swapping, in MiB (`MemAvailable`, proc_meminfo(5)). */
export type ReadAvailableMemory = () => number;

export const readAvailableMemory: ReadAvailableMemory = () => {
  const match = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'));
  return Math.floor(Number(match?.[1] ?? 0) / 1024);
};

export interface MemoryDemand {
  /** `MemAvailable` in MiB */
  readonly availableMb: number;
  /** guest memory of the sandbox that asks, in MiB */
  readonly wantedMb: number;
  /** guest memory of sandboxes that are still booting, in MiB: promised, but not yet touched */
  readonly promisedMb: number;
  /** share of a guest's memory that must be free for it, 0..1 */
  readonly share: number;
}

/**
 * The rule of admission: a guest's memory is a private mapping and costs only what it touches, and what running guests
 * have touched is no longer in `MemAvailable`. So the host must have `share` of the memory of every guest that is
 * starting. A share of 0 switches the check off, 1 promises each its whole memory at the moment it starts.
 * @returns the MiB that are missing, 0 when there is room
 */
export function missingMemory(demand: MemoryDemand): number {
  const needed = Math.ceil((demand.wantedMb + demand.promisedMb) * demand.share);
  return Math.max(0, needed - demand.availableMb);
}
