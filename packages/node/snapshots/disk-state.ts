import type { DiskOrigin, RemoteLayer } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import type { JsonObject, SnapshotManifest } from './contract.ts';

const Remote = z.strictObject({
  key: z.string(),
  source: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});

/**
 * What a manifest says of the disk, version 1: a snapshot of the block room, or layers, the bottom one first: paths of
 * files, which have to stay, and layers that are read on demand.
 */
const DiskState = z.union([
  z.strictObject({ version: z.literal(1), snapshot: z.string() }),
  z.strictObject({ version: z.literal(1), layers: z.array(z.union([z.string(), Remote])) }),
]);

export const snapshotState = (snapshot: string): JsonObject => ({ version: 1, snapshot });
export const layersState = (layers: readonly (string | RemoteLayer)[]): JsonObject => ({
  version: 1,
  layers: layers.map((layer) => (typeof layer === 'string' ? layer : { key: layer.key, source: layer.source })),
});

/** @throws AenvError `snapshot_corrupt` */
export function diskOf({ id, disk }: Pick<SnapshotManifest, 'id' | 'disk'>): DiskOrigin {
  const { success, data, error } = DiskState.safeParse(disk.state);
  if (!success) {
    throw new AenvError('snapshot_corrupt', `snapshot ${id}: its manifest does not tell its disk`, { cause: error });
  }
  return 'snapshot' in data ? { kind: 'snapshot', snapshot: data.snapshot } : { kind: 'layers', layers: data.layers };
}
