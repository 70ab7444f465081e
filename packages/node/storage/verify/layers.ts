import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { openLayerFile } from '@aenv/block/blob/open-layer-blob.ts';
import { openSealedLayer } from '@aenv/block/layers/stack/sealed-layer.ts';
import { MAX_LOCAL_ENTRIES } from '@aenv/block/lsmt/format.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { layerKey } from '@aenv/images/convert/chain.ts';
import { LAYER_FILE, MODEL_FILE, RECORD_FILE, readRecord } from '@aenv/images/convert/layer-record.ts';
import { isWholeTree } from '@aenv/images/ext4/sidecar/file.ts';
import { type Checks, sizeOf } from '../../snapshots/repository/checks.ts';
import { checkFile } from '../../snapshots/repository/hash-file.ts';

const BLOB = /^blob-([a-z0-9]+)-([0-9a-f]+)$/;

/** A layer of the folder of assets: its bytes, its record, and the model of the file system beside it. */
export async function verifyLayer(folder: string, checks: Checks): Promise<void> {
  const name = basename(folder);
  const path = join(folder, LAYER_FILE);
  const [, algorithm, hex] = BLOB.exec(name) ?? [];
  if (algorithm !== undefined && hex !== undefined) {
    await checks.of('layer', path, async () => {
      await checkFile(path, { digest: `${algorithm}:${hex}`, sizeBytes: (await stat(path)).size }, 'layer');
    });
    return;
  }
  const recordPath = join(folder, RECORD_FILE);
  const record = await checks.of('record of a layer', recordPath, async () => {
    const found = await readRecord(folder);
    if (found === undefined) throw damaged(recordPath, 'it is missing');
    if (layerKey(found.chainId, found.virtualSize) !== name) throw damaged(recordPath, 'it is that of another layer');
    return found;
  });
  const modelPath = join(folder, MODEL_FILE);
  // Layers of drives have none, and it can be made again.
  if ((await sizeOf(modelPath)) !== undefined) {
    await checks.of('model of a file system', modelPath, async () => {
      if (!(await isWholeTree(modelPath))) throw damaged(modelPath, 'its checksum does not hold');
    });
  }
  if (record === undefined) return;
  await checks.of('layer', path, () => checkFile(path, record, 'layer'));
}

/** A layer without a digest: that header, index and trailer are those of a layer. */
export async function verifyStructure(path: string, checks: Checks): Promise<void> {
  await checks.of('layer', path, async () => {
    const source = await openLayerFile(path);
    try {
      await openSealedLayer(source, { maxEntries: MAX_LOCAL_ENTRIES });
    } finally {
      await source.close();
    }
  });
}

export function damaged(path: string, why: string): AenvError {
  return new AenvError('layer_corrupt', `${path}: ${why}`);
}

/** Text of a file. @returns undefined when there is none */
export async function textOf(path: string): Promise<string | undefined> {
  return await readFile(path, 'utf8').catch(() => undefined);
}
