import { fileLayer, LayerPool, type LayerRef } from '@aenv/block/layers/stack/pool.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { assetFolder } from '../cache/asset-folder.ts';
import { layerKey, sha256 } from '../convert/chain.ts';
import { readRecord, writeRecord } from '../convert/layer-record.ts';
import { LayerSink } from '../convert/layer-sink.ts';
import { SUPERBLOCK_OFFSET, withLabel } from '../ext4/format/label.ts';
import { uuidOf } from '../ext4/identity.ts';
import { BLOCK_SIZE } from '../ext4/model/geometry.ts';
import type { PulledImage, PulledLayer, PullOptions } from '../pull/contract.ts';

/**
 * A layer that gives the file system of an image a label: its first block, and nothing else. It is kept like the layers
 * of images, one for each image and label.
 * @throws AenvError `image_invalid` when there is no ext4 file system; what reading the layers throws
 */
export async function ensureLabelLayer(
  { name, layers, sizeBytes }: Pick<PulledImage, 'name' | 'layers' | 'sizeBytes'>,
  label: string,
  options: Pick<PullOptions, 'layersDir' | 'remoteLayers' | 'signal'>,
): Promise<PulledLayer> {
  const chainId = sha256(['label', label, ...layers.map(({ digest }) => digest)].join('\n'));
  const key = layerKey(chainId, sizeBytes);
  const folder = await assetFolder(options.layersDir, key, async (result) => {
    const block = await firstBlock(
      layers.map((layer) => refOf(layer, options)),
      options.signal,
    );
    const superblock = withLabel(block.subarray(SUPERBLOCK_OFFSET), label);
    if (superblock === undefined) {
      throw new AenvError('image_invalid', `${name} has no ext4 file system, so it cannot be attached`);
    }
    superblock.copy(block, SUPERBLOCK_OFFSET);
    const identity = { uuid: uuidOf(key), virtualSize: sizeBytes };
    await using sink = await LayerSink.create(result, { ...identity, parentUuid: undefined });
    await sink.write(0, block);
    const { digest, sizeBytes: bytes } = await sink.finish();
    await writeRecord(result, { ...identity, chainId, digest, sizeBytes: bytes });
  });
  const record = await readRecord(folder);
  if (record === undefined) throw new AenvError('asset_failed', `${folder} has gone while it was made`);
  return { kind: 'file', digest: record.digest, sizeBytes: record.sizeBytes, path: record.path };
}

function refOf(layer: PulledLayer, { remoteLayers }: Pick<PullOptions, 'remoteLayers'>): LayerRef {
  if (layer.kind === 'file') return fileLayer(layer.path);
  if (remoteLayers === undefined) throw new AenvError('internal', `layer ${layer.digest} cannot be read here`);
  return remoteLayers.ref(layer.remote);
}

async function firstBlock(layers: readonly LayerRef[], signal: AbortSignal | undefined): Promise<Buffer> {
  const stack = await new LayerPool().openStack(layers, signal);
  try {
    const block = Buffer.alloc(BLOCK_SIZE);
    await stack.read(block, 0, signal);
    return block;
  } finally {
    await stack.close();
  }
}
