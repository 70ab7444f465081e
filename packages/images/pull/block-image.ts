import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileLayer, LayerPool, type LayerRef } from '@aenv/block/layers/stack/pool.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { assetFolder } from '../cache/asset-folder.ts';
import { requireDigest } from '../oci/digest.ts';
import type { ResolvedImage, ResolvedLayer } from '../resolve/contract.ts';
import type { PulledLayer, PullOptions } from './contract.ts';

const LAYER_FILE = 'overlaybd.commit';

/**
 * Takes over an image whose layers are block layers already. Those of a registry stay there, unless it does not serve
 * parts of them; the stack is opened once, so that a damaged one is found now and its indexes are here.
 * @throws AenvError `layer_corrupt`, `layer_unavailable`; what fetching a layer throws
 */
export async function takeBlockImage(
  image: ResolvedImage,
  options: PullOptions,
  onFetched: (layer: number, bytes: number) => void,
): Promise<{ readonly layers: readonly PulledLayer[]; readonly sizeBytes: number }> {
  const remote = remoteStack(image, options);
  if (remote !== undefined) {
    try {
      return { layers: remote.layers, sizeBytes: await sizeOf(remote.refs, options.signal) };
    } catch (error) {
      if (!servesNoParts(error)) throw error;
      options.log.warn('the registry does not serve parts of layers: they are fetched whole', { image: image.name });
    }
  }
  const layers: PulledLayer[] = [];
  for (const [at, layer] of image.layers.entries()) {
    layers.push(await fetchWhole(layer, options, (bytes) => onFetched(at, bytes)));
  }
  const refs = layers.flatMap((layer) => (layer.kind === 'file' ? [fileLayer(layer.path)] : []));
  return { layers, sizeBytes: await sizeOf(refs, options.signal) };
}

function remoteStack(image: ResolvedImage, { remoteLayers }: PullOptions) {
  if (remoteLayers === undefined) return undefined;
  const layers: PulledLayer[] = [];
  const refs: LayerRef[] = [];
  for (const { digest, sizeBytes, remote } of image.layers) {
    if (remote === undefined) return undefined;
    layers.push({ kind: 'remote', digest, sizeBytes, remote });
    refs.push(remoteLayers.ref(remote));
  }
  return { layers, refs };
}

async function fetchWhole(
  layer: ResolvedLayer,
  options: PullOptions,
  onFetched: (bytes: number) => void,
): Promise<PulledLayer> {
  const { digest, sizeBytes } = layer;
  const { algorithm, hex } = requireDigest(digest);
  const folder = await assetFolder(options.layersDir, `blob-${algorithm}-${hex}`, async (result) => {
    await using file = await open(join(result, LAYER_FILE), 'wx', 0o644);
    for await (const chunk of layer.open(options.signal)) {
      await file.writeFile(chunk);
      onFetched(chunk.length);
    }
    // Only here the digest is known to be right.
    await file.sync();
  });
  return { kind: 'file', digest, sizeBytes, path: join(folder, LAYER_FILE) };
}

async function sizeOf(refs: readonly LayerRef[], signal: AbortSignal | undefined): Promise<number> {
  const stack = await new LayerPool().openStack(refs, signal);
  await stack.close();
  return stack.virtualSize;
}

function servesNoParts(error: unknown): boolean {
  const { cause } = error instanceof Error ? error : {};
  return cause instanceof AenvError && cause.details.reason === 'no_ranges';
}
