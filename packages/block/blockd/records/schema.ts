import { z } from 'zod';

/** Names of disks and of snapshots; they are file names too. */
export const DiskId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,127}$/);
export const SnapshotId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/);

const LayerId = z.uuid();
const sizeBytes = z.int().positive().multipleOf(512);
const absolutePath = z.string().regex(/^\/[^\0]*$/);

/** A read-only layer of a disk. */
export const DiskLayer = z.discriminatedUnion('kind', [
  /** A file that someone else keeps as long as a disk or a snapshot has it. */
  z.strictObject({ kind: z.literal('file'), path: absolutePath }),
  /** A layer that was the upper of a disk once, in the daemon's own folder. */
  z.strictObject({ kind: z.literal('own'), layer: LayerId }),
  /** A layer that is read on demand; `source` is for whoever knows where from, `key` is equal for equal layers. */
  z.strictObject({
    kind: z.literal('remote'),
    key: z.string().min(1).max(256),
    source: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  }),
]);
export type DiskLayer = z.infer<typeof DiskLayer>;

/**
 * A disk as it is kept, so that a daemon that is started later serves it again.
 *
 * `uppers` has the layer that is written, and behind it the one that takes its place at the next snapshot, if that has
 * been made already. Right after a snapshot the record still has both; which of them is written is told by the layers.
 */
export const DiskRecord = z.strictObject({
  version: z.literal(1),
  disk: DiskId,
  sizeBytes,
  durability: z.enum(['relaxed', 'strict']),
  /** bottom first */
  layers: z.array(DiskLayer),
  uppers: z.array(LayerId).min(1).max(2),
  /** socket that it is served on */
  socket: absolutePath.nullable(),
});
export type DiskRecord = z.infer<typeof DiskRecord>;

export const SnapshotRecord = z.strictObject({
  version: z.literal(1),
  snapshot: SnapshotId,
  sizeBytes,
  /** bottom first; all of them are sealed and on the disk */
  layers: z.array(DiskLayer),
});
export type SnapshotRecord = z.infer<typeof SnapshotRecord>;
