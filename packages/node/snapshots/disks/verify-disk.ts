import { setImmediate as nextTurn } from 'node:timers/promises';
import { openLayerFile } from '@aenv/block/blob/open-layer-blob.ts';
import { readAll } from '@aenv/block/blob/read-all.ts';
import type { BlockStore, DiskOrigin } from '@aenv/block/contract.ts';
import { openSealedLayer } from '@aenv/block/layers/stack/sealed-layer.ts';
import { MAX_LOCAL_ENTRIES } from '@aenv/block/lsmt/format.ts';
import type { SnapshotDisk, SnapshotVerification } from '../contract.ts';
import { Checks } from '../repository/checks.ts';
import { checkFile } from '../repository/hash-file.ts';
import { diskOf, drivesOf, filesOf } from './disk-state.ts';

const PIECE = 2 ** 20;

/**
 * Reads all layers of a sandbox's disks. Those that a disk has written are compared with their digests; those of images have
 * checksums of their own, or at least a structure. What is read on demand from a registry is checked when it is read.
 */
export async function verifyDisk(
  volumes: Pick<BlockStore, 'layersOf'>,
  disk: SnapshotDisk,
): Promise<SnapshotVerification> {
  const checks = new Checks();
  const kept = { id: 'to be verified', disk };
  const known = await verifyKnownFiles(disk, checks);
  const others = await checks.of('disk', '', async () => {
    const paths: string[] = [];
    for (const origin of [diskOf(kept), ...drivesOf(kept).map((drive) => drive.disk)]) {
      paths.push(...(await layersOf(volumes, origin)));
    }
    return paths.filter((path) => !known.has(path));
  });
  for (const path of new Set(others)) await checks.of('layer of the disk', path, () => readLayer(path));
  return checks;
}

/** Reads those files of a disk whose digests its manifest has. @returns their paths */
export async function verifyKnownFiles(disk: SnapshotDisk, checks: Checks): Promise<ReadonlySet<string>> {
  const files = await checks.of('disk', '', async () => filesOf({ id: 'to be verified', disk }));
  for (const { path, ...sum } of files ?? []) {
    await checks.of('layer of the disk', path, () => checkFile(path, sum, `layer ${path}`));
  }
  return new Set(files?.map(({ path }) => path));
}

async function layersOf(volumes: Pick<BlockStore, 'layersOf'>, origin: DiskOrigin): Promise<string[]> {
  const layers = origin.kind === 'layers' ? origin.layers : await volumes.layersOf(origin.snapshot);
  return layers.filter((layer) => typeof layer === 'string');
}

/** @throws AenvError `layer_corrupt`, `io_failed` */
async function readLayer(path: string): Promise<void> {
  const source = await openLayerFile(path);
  try {
    await openSealedLayer(source, { maxEntries: MAX_LOCAL_ENTRIES });
    for (let offset = 0; offset < source.size; offset += PIECE) {
      await readAll(source, offset, Math.min(PIECE, source.size - offset));
      // Files are read at once, and others want to be served, too.
      await nextTurn();
    }
  } finally {
    await source.close();
  }
}
