import type { DiskOrigin, RemoteLayer } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import type { AttachedDrive, DriveStart } from '../../sandboxes/drives/contract.ts';
import { DriveSchema } from '../../sandboxes/drives/schema.ts';
import type { JsonObject, SnapshotManifest } from '../contract.ts';
import type { FileSum } from '../repository/hash-file.ts';

const Remote = z.strictObject({
  key: z.string(),
  source: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});

const LayerFile = z.strictObject({ path: z.string(), sizeBytes: z.int().nonnegative(), digest: z.string() });

/** A file of a layer as it was when it was kept. */
export interface LayerSum extends FileSum {
  readonly path: string;
}

/** An attached drive: what it is, and the snapshot of its disk. */
const Drive = z.strictObject({ drive: DriveSchema, snapshot: z.string() });

/**
 * What a manifest says of the disk, version 1: a snapshot of the block room, or layers, the bottom one first: paths of
 * files, which have to stay, and layers that are read on demand. Version 2 has attached drives, too; version 3 tells what
 * must be in the files that disks have written, which have no checksums of their own; version 4 tells that of layers.
 */
const DiskState = z.union([
  z.strictObject({ version: z.literal(1), snapshot: z.string() }),
  z.strictObject({ version: z.literal(2), snapshot: z.string(), drives: z.array(Drive) }),
  z.strictObject({
    version: z.literal(3),
    snapshot: z.string(),
    drives: z.array(Drive),
    files: z.array(LayerFile),
  }),
  z.strictObject({ version: z.literal(1), layers: z.array(z.union([z.string(), Remote])) }),
  z.strictObject({
    version: z.literal(4),
    layers: z.array(z.union([z.string(), Remote])),
    files: z.array(LayerFile),
  }),
]);

/** What of a captured sandbox is known by its snapshots in the block room: its root, and its drives in their order. */
export function snapshotState(id: string, drives: readonly AttachedDrive[], files?: readonly LayerSum[]): JsonObject {
  if (drives.length === 0 && files === undefined) return { version: 1, snapshot: id };
  const attached = drives.map((drive, at) => ({
    drive: DriveSchema.parse(drive),
    snapshot: driveSnapshot(id, at + 1),
  }));
  if (files === undefined) return { version: 2, snapshot: id, drives: attached };
  const sums = files.map(({ path, sizeBytes, digest }) => ({ path, sizeBytes, digest }));
  return { version: 3, snapshot: id, drives: attached, files: sums };
}

/**
 * Name of the snapshot of a drive's disk; that of the root is named like the checkpoint.
 * @param number of the drive, from 1
 */
export function driveSnapshot(checkpoint: string, number: number): string {
  return `${checkpoint}.${number}`;
}

/** The checkpoint that a snapshot of a disk belongs to. */
export function checkpointOf(snapshot: string): string {
  return snapshot.replace(/\.\d+$/, '');
}

/** @param files what must be in those of the layers that have no checksums of their own */
export function layersState(layers: readonly (string | RemoteLayer)[], files?: readonly LayerSum[]): JsonObject {
  const plain = layers.map((layer) => (typeof layer === 'string' ? layer : { key: layer.key, source: layer.source }));
  if (files === undefined) return { version: 1, layers: plain };
  return {
    version: 4,
    layers: plain,
    files: files.map(({ path, sizeBytes, digest }) => ({ path, sizeBytes, digest })),
  };
}

/** @throws AenvError `snapshot_corrupt` */
export function diskOf(manifest: Pick<SnapshotManifest, 'id' | 'disk'>): DiskOrigin {
  const state = parse(manifest);
  return 'snapshot' in state
    ? { kind: 'snapshot', snapshot: state.snapshot }
    : { kind: 'layers', layers: state.layers };
}

/** @throws AenvError `snapshot_corrupt` */
export function drivesOf(manifest: Pick<SnapshotManifest, 'id' | 'disk'>): readonly DriveStart[] {
  const state = parse(manifest);
  if (!('drives' in state)) return [];
  return state.drives.map(({ drive, snapshot }) => ({ drive, disk: { kind: 'snapshot', snapshot } }));
}

/** Files of layers whose contents are known. @throws AenvError `snapshot_corrupt` */
export function filesOf(manifest: Pick<SnapshotManifest, 'id' | 'disk'>): readonly LayerSum[] {
  const state = parse(manifest);
  return 'files' in state ? state.files : [];
}

function parse({ id, disk }: Pick<SnapshotManifest, 'id' | 'disk'>): z.output<typeof DiskState> {
  const { success, data, error } = DiskState.safeParse(disk.state);
  if (success) return data;
  throw new AenvError('snapshot_corrupt', `snapshot ${id}: its manifest does not tell its disk`, { cause: error });
}
