import type { DiskLayer, DiskRecord, SnapshotRecord } from '../records/schema.ts';

function ownLayers(layers: readonly DiskLayer[]): string[] {
  return layers.flatMap((layer) => (layer.kind === 'own' ? [layer.layer] : []));
}

/** Layers in the daemon's folder that a disk stands on or writes to. */
export function layersOfDisk(record: Pick<DiskRecord, 'layers' | 'uppers'>): string[] {
  return [...ownLayers(record.layers), ...record.uppers];
}

export function layersOfSnapshot(record: Pick<SnapshotRecord, 'layers'>): string[] {
  return ownLayers(record.layers);
}

/**
 * Own layers on top of a disk's chain that lie directly above one another, bottom first: those that can be merged.
 */
export function mergeableLayers(layers: readonly DiskLayer[]): { readonly below: DiskLayer[]; readonly top: string[] } {
  let split = layers.length;
  while (split > 0 && layers[split - 1]?.kind === 'own') split--;
  return { below: layers.slice(0, split), top: ownLayers(layers.slice(split)) };
}
