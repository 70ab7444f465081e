import type { Durability } from '../layers/contract.ts';

/** One write, in bytes. */
export interface WriteOp {
  readonly data: Uint8Array;
  readonly offset: number;
}

/**
 * What an export serves: a disk of a fixed size. All offsets and lengths are bytes, inside `[0, size)` (checked by the
 * export) and multiples of 512 (the export aligns).
 */
export interface Volume {
  readonly id: string;
  readonly size: number;
  readonly readOnly: boolean;
  /** @returns undefined when done at once, so that the usual read costs no promise */
  read(target: Uint8Array, offset: number, signal?: AbortSignal): Promise<void> | undefined;
  /** @throws AenvError `no_space` */
  write(data: Uint8Array, offset: number): void;
  /** Several writes at once, later ones over earlier ones. When it throws, any of them may have happened. */
  writeMany(writes: readonly WriteOp[]): void;
  zero(offset: number, length: number): void;
  discard(offset: number, length: number): void;
  /** With the volume's own durability; `strict` for a write that asks for forced unit access (FUA). */
  flush(atLeast?: Durability): Promise<void>;
  /** Data ranges, for block status and sparse copies. */
  dataRanges(offset: number, length: number): Iterable<{ readonly offset: number; readonly length: number }>;
}
