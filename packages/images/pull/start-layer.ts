import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { LayerRef } from '@aenv/block/layers/stack/pool.ts';
import { LayerPool } from '@aenv/block/layers/stack/pool.ts';
import { assetFolder } from '../cache/asset-folder.ts';
import { type ConvertedLayer, readRecord, writeRecord } from '../convert/layer-record.ts';
import { LayerSink } from '../convert/layer-sink.ts';
import { DiskFiles } from '../ext4/edit/disk-files.ts';
import { uuidOf } from '../ext4/identity.ts';
import type { ImageConfig } from '../oci/image-config.ts';
import { prepareRoot, startStateId } from '../start-state/prepare.ts';

/** Raise it when the same layers below would get another one. */
const FORMAT = 1;

/**
 * The layer with E2B's start state for an image that is block layers already: a small one of this host, made once for
 * the same layers below. Only what it changes is read of these.
 * @param below digests of the image's layers, bottom first
 * @param open the layers themselves; called when the layer has to be made
 * @throws AenvError `image_invalid` when the image's file system is none that can be changed; `no_space`; what reading the
 *   layers throws
 */
export async function startLayer(
  below: readonly string[],
  config: ImageConfig,
  open: () => readonly LayerRef[],
  { layersDir, signal }: { readonly layersDir: string; readonly signal?: AbortSignal },
): Promise<ConvertedLayer> {
  const chainId = `blocks-${FORMAT}\n${below.join('\n')}\n${startStateId(config)}`;
  const key = createHash('sha256').update(chainId).digest('hex');
  const known = await readRecord(join(layersDir, key));
  if (known !== undefined) return known;
  const folder = await assetFolder(layersDir, key, async (result) => {
    const stack = await new LayerPool().openStack(open(), signal);
    try {
      const files = await DiskFiles.open(stack, stack.virtualSize, signal);
      const start = await prepareRoot(files, config);
      await files.setRootLabel();
      const identity = { uuid: uuidOf(key), virtualSize: stack.virtualSize, parentUuid: undefined };
      await using sink = await LayerSink.create(result, identity);
      await files.writeTo(sink);
      const { digest, sizeBytes } = await sink.finish();
      const { uuid, virtualSize } = identity;
      await writeRecord(result, { chainId: key, digest, sizeBytes, uuid, virtualSize, start });
    } finally {
      await stack.close();
    }
  });
  const made = await readRecord(folder);
  if (made === undefined) throw new Error(`${folder} has gone while it was made`);
  return made;
}
