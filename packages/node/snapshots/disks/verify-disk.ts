import { stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openLayerFile } from '@aenv/block/blob/open-layer-blob.ts';
import { readAll } from '@aenv/block/blob/read-all.ts';
import type { BlockStore, DiskOrigin } from '@aenv/block/contract.ts';
import { openSealedLayer } from '@aenv/block/layers/stack/sealed-layer.ts';
import { MAX_LOCAL_ENTRIES } from '@aenv/block/lsmt/format.ts';
import type { ArtefactProblem, SnapshotDisk, SnapshotVerification } from '../contract.ts';
import { checkFile } from '../repository/hash-file.ts';
import { diskOf, drivesOf, filesOf, type LayerSum } from './disk-state.ts';

const PIECE = 2 ** 20;

/**
 * Reads all layers of a sandbox's disks. Those that a disk has written are compared with their digests; those of images have
 * checksums of their own, or at least a structure. What is read on demand from a registry is checked when it is read.
 */
export async function verifyDisk(
  volumes: Pick<BlockStore, 'layersOf'>,
  disk: SnapshotDisk,
): Promise<SnapshotVerification> {
  const problems: ArtefactProblem[] = [];
  let checkedBytes = 0;
  const attempt = async (artefact: string, path: string, check: () => Promise<unknown>) => {
    try {
      await check();
      checkedBytes += (await stat(path).catch(() => undefined))?.size ?? 0;
    } catch (error) {
      problems.push({ artefact, path, message: error instanceof Error ? error.message : String(error) });
    }
  };
  const sums = new Map<string, LayerSum>();
  const paths: string[] = [];
  await attempt('disk', '', async () => {
    const kept = { id: 'to be verified', disk };
    for (const file of filesOf(kept)) sums.set(file.path, file);
    for (const origin of [diskOf(kept), ...drivesOf(kept).map((drive) => drive.disk)]) {
      paths.push(...(await layersOf(volumes, origin)));
    }
  });
  for (const path of new Set([...paths, ...sums.keys()])) {
    const sum = sums.get(path);
    const check = sum === undefined ? () => readLayer(path) : () => checkFile(path, sum, `layer ${path}`);
    await attempt('layer of the disk', path, check);
  }
  return { checkedBytes, problems };
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
