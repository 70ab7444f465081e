import { ERRORS, type ErrorCode } from '@aenv/contracts/errors/registry.ts';
import { z } from 'zod';
import { DiskId, DiskLayer, SnapshotId } from '../records/schema.ts';

/**
 * What the node and the block daemon say to each other over its control socket. Both are checked: the daemon may be of an
 * older version than the node that finds it again, and the other way round.
 */

/** Raised when one side would misread the other. */
export const PROTOCOL = 1;

const absolutePath = z.string().regex(/^\/[^\0]*$/);
const size = z.int().positive().multipleOf(512);
const durability = z.enum(['relaxed', 'strict']);

/** Where the bytes of a new disk come from. */
const Origin = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('layers'), layers: z.array(DiskLayer).max(250) }),
  z.strictObject({ kind: z.literal('snapshot'), snapshot: SnapshotId }),
]);

/** Operations by name, with what they take and what they give. */
export const OPERATIONS = {
  hello: {
    request: z.strictObject({}),
    result: z.object({ protocol: z.int(), version: z.string(), pid: z.int().positive() }),
  },
  /** Makes a disk; it is complete and on stable storage, or not there. */
  create: {
    request: z.strictObject({ disk: DiskId, origin: Origin, sizeBytes: size, durability }),
    result: z.object({}),
  },
  /**
   * Serves a disk on a socket until `detach` or `remove`, also by a daemon that is started later. The folder of the socket
   * must be there and be the daemon's own; who may enter it may use the disk.
   */
  attach: {
    request: z.strictObject({ disk: DiskId, socket: absolutePath }),
    result: z.object({ export: z.string() }),
  },
  detach: { request: z.strictObject({ disk: DiskId }), result: z.object({}) },
  /** No error when there is none. */
  remove: { request: z.strictObject({ disk: DiskId }), result: z.object({}) },
  list: { request: z.strictObject({}), result: z.object({ disks: z.array(z.string()) }) },
  /** Makes what the next snapshot needs, so that the VM need not stand still for it. */
  prepareSnapshot: { request: z.strictObject({ disk: DiskId }), result: z.object({}) },
  /**
   * Takes a snapshot: what was written up to now. Answers when writing may go on; it lasts only after `settleSnapshot`.
   * `swapMs` is how long the disk stood still.
   */
  snapshot: {
    request: z.strictObject({ disk: DiskId, snapshot: SnapshotId }),
    result: z.object({ swapMs: z.number() }),
  },
  /** Waits until a snapshot is on stable storage. */
  settleSnapshot: {
    request: z.strictObject({ snapshot: SnapshotId }),
    result: z.object({ sizeBytes: z.int(), layers: z.array(DiskLayer) }),
  },
  removeSnapshot: { request: z.strictObject({ snapshot: SnapshotId }), result: z.object({}) },
  listSnapshots: { request: z.strictObject({}), result: z.object({ snapshots: z.array(z.string()) }) },
  flush: { request: z.strictObject({ disk: DiskId, durability }), result: z.object({}) },
  /** Merges the layers that this disk alone has written. */
  compact: { request: z.strictObject({ disk: DiskId }), result: z.object({ layers: z.int() }) },
  stat: {
    request: z.strictObject({ disk: DiskId }),
    result: z.object({
      sizeBytes: z.int(),
      /** on the host, by this disk alone */
      allocatedBytes: z.int(),
      layers: z.int(),
      connections: z.int(),
    }),
  },
  /** Sums over all disks since the daemon was started. */
  counters: {
    request: z.strictObject({}),
    result: z.object({
      disks: z.int(),
      attached: z.int(),
      connections: z.int(),
      reads: z.int(),
      readBytes: z.int(),
      writes: z.int(),
      writtenBytes: z.int(),
      flushes: z.int(),
      zeroes: z.int(),
      errors: z.int(),
      swaps: z.int(),
      compactions: z.int(),
    }),
  },
  /** Ends the daemon; disks that are attached are served again by the next one. */
  shutdown: { request: z.strictObject({}), result: z.object({}) },
} as const;

export type Operation = keyof typeof OPERATIONS;
export type OperationRequest<O extends Operation> = z.input<(typeof OPERATIONS)[O]['request']>;
export type OperationResult<O extends Operation> = z.output<(typeof OPERATIONS)[O]['result']>;

export const Request = z.strictObject({ id: z.int().min(0), op: z.string().max(64), args: z.unknown() });

const codes = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

export const Answer = z.union([
  z.object({ id: z.int().min(0), result: z.unknown() }),
  z.object({
    id: z.int().min(0),
    // A code that a newer daemon has and this one does not know is an internal fault here.
    error: z.object({ code: z.enum(codes).catch('internal'), message: z.string(), remediation: z.string() }),
  }),
]);
