import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileLayer, LayerPool, type LayerRef } from '@aenv/block/layers/stack/pool.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { assetFolder } from '../cache/asset-folder.ts';
import { requireDigest } from '../oci/digest.ts';
import type { ResolvedImage, ResolvedLayer } from '../resolve/contract.ts';
import type { ImageStart } from '../start-state/start.ts';
import type { PulledLayer, PullOptions } from './contract.ts';
import { startLayer } from './start-layer.ts';

const LAYER_FILE = 'overlaybd.commit';

/** A disk of layers that were blocks already, with the start state on top. */
export interface TakenImage {
  /** bottom first */
  readonly layers: readonly PulledLayer[];
  readonly sizeBytes: number;
  readonly start: Omit<ImageStart, 'envVars'>;
}

/**
 * Takes over an image whose layers are block layers already. Those of a registry stay there, unless it does not serve
 * parts of them, or not to whoever will read them. The start state becomes a layer of this host on top; to make it the
 * stack is opened and its file system looked into, so that what is damaged is found now.
 * @throws AenvError `layer_corrupt`, `layer_unavailable`, `image_invalid`; what fetching a layer throws
 */
export async function takeBlockImage(
  image: ResolvedImage,
  options: PullOptions,
  onFetched: (layer: number, bytes: number) => void,
): Promise<TakenImage> {
  const remote = remoteStack(image, options);
  if (remote !== undefined) {
    try {
      return await withStart(image, remote.layers, remote.refs, options);
    } catch (error) {
      const why = whyWhole(error);
      if (why === undefined) throw error;
      options.log.warn('layers are fetched whole', { image: image.name, why });
    }
  }
  const layers: PulledLayer[] = [];
  for (const [at, layer] of image.layers.entries()) {
    layers.push(await fetchWhole(layer, options, (bytes) => onFetched(at, bytes)));
  }
  const refs = layers.flatMap((layer) => (layer.kind === 'file' ? [fileLayer(layer.path)] : []));
  return withStart(image, layers, refs, options);
}

async function withStart(
  { config }: ResolvedImage,
  layers: readonly PulledLayer[],
  refs: readonly LayerRef[],
  options: PullOptions,
): Promise<TakenImage> {
  if (options.startState === false) {
    const stack = await new LayerPool().openStack(refs, options.signal);
    await stack.close();
    refuseOtherSize(stack.virtualSize, options);
    return { layers, sizeBytes: stack.virtualSize, start: { user: 'root', workdir: '/' } };
  }
  const below = layers.map(({ digest }) => digest);
  const { path, digest, sizeBytes, virtualSize, start } = await startLayer(below, config, () => refs, options);
  if (start === undefined) throw new AenvError('asset_failed', `${path} does not hold what it should`);
  const own: PulledLayer = { kind: 'file', digest, sizeBytes, path };
  refuseOtherSize(virtualSize, options);
  return { layers: [...layers, own], sizeBytes: virtualSize, start };
}

/** The file system has the size that it was made with. */
function refuseOtherSize(virtualSize: number, { sizeBytes }: PullOptions): void {
  if (sizeBytes === undefined || sizeBytes === virtualSize) return;
  const own = Math.ceil(virtualSize / 2 ** 20);
  throw new AenvError(
    'invalid_request',
    `the image is block layers for a disk of ${own} MiB, which has no other size`,
    {
      remediation: 'Leave the size of the disk out.',
    },
  );
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

/** Why layers cannot stay where they are; undefined when fetching them whole would not help. */
function whyWhole(error: unknown): string | undefined {
  const { cause } = error instanceof Error ? error : {};
  if (!(cause instanceof AenvError)) return undefined;
  if (cause.details.reason === 'no_ranges') return 'the registry does not serve parts of layers';
  // The block daemon has the credentials of Docker's file only, and not those of helpers.
  if (cause.code === 'registry_auth') return 'the block daemon has no credentials for the registry';
  return undefined;
}
