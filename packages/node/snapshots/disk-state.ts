import type { DiskOrigin } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import type { JsonObject, SnapshotManifest } from './contract.ts';

/** What a manifest says of the disk, version 1: a snapshot of the block room, or files of layers, the bottom one first. */
const DiskState = z.union([
  z.strictObject({ version: z.literal(1), snapshot: z.string() }),
  z.strictObject({ version: z.literal(1), layers: z.array(z.string()) }),
]);

export const snapshotState = (snapshot: string): JsonObject => ({ version: 1, snapshot });
export const layersState = (layers: readonly string[]): JsonObject => ({ version: 1, layers });

/** @throws AenvError `snapshot_corrupt` */
export function diskOf({ id, disk }: Pick<SnapshotManifest, 'id' | 'disk'>): DiskOrigin {
  const { success, data, error } = DiskState.safeParse(disk.state);
  if (!success) {
    throw new AenvError('snapshot_corrupt', `snapshot ${id}: its manifest does not tell its disk`, { cause: error });
  }
  return 'snapshot' in data ? { kind: 'snapshot', snapshot: data.snapshot } : { kind: 'layers', layers: data.layers };
}
