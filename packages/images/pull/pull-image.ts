import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type ConvertOptions, convertImage } from '../convert/convert.ts';
import type { ResolvedImage } from '../resolve/contract.ts';
import { resolveImage } from '../resolve/resolve-image.ts';
import { takeBlockImage } from './block-image.ts';
import type { PulledImage, PullOptions } from './contract.ts';
import { LayerSpool } from './layer-spool.ts';

const DEFAULT_SPOOL = 4 * 2 ** 30;
const DEFAULT_AT_ONCE = 3;

/**
 * From the name of an image to the disk that sandboxes of it start from. Layers that have to be converted are while they
 * come, the next ones being fetched meanwhile; block layers of a registry stay there until somebody reads them.
 * @throws AenvError what `resolveImage` and `convertImage` throw; `layer_corrupt`, `layer_unavailable`
 */
export async function pullImage(name: string, options: PullOptions): Promise<PulledImage> {
  options.onProgress?.({ phase: 'resolving', name });
  const image = await resolveImage(name, options);
  const identity = { name: image.name, digest: image.digest, config: image.config };
  if (isBlocks(image)) return { ...identity, ...(await takeOver(image, options)) };
  const converted = await convert(image, options);
  return {
    ...identity,
    layers: converted.layers.map(({ digest, sizeBytes, path }) => ({ kind: 'file', digest, sizeBytes, path })),
    sizeBytes: converted.sizeBytes,
    start: converted.start,
  };
}

/** @throws AenvError `image_invalid` for an image that is neither */
function isBlocks({ name, layers }: ResolvedImage): boolean {
  const blocks = layers.filter(({ form }) => form === 'overlaybd').length;
  if (blocks === 0 || blocks === layers.length) return blocks > 0;
  throw new AenvError('image_invalid', `${name} has layers of overlaybd and archives, which do not fit together`, {
    remediation: 'Convert all of its layers to overlaybd, or none.',
  });
}

/** Converts the layers of files while they come. */
async function convert(image: ResolvedImage, options: PullOptions) {
  const { spoolDir, spoolBytes = DEFAULT_SPOOL, atOnce = DEFAULT_AT_ONCE } = options;
  let fetchedBytes = 0;
  let report = () => {};
  const spool = new LayerSpool(image.layers, {
    dir: spoolDir,
    maxBytes: spoolBytes,
    atOnce,
    signal: options.signal,
    onFetched: (bytes) => {
      fetchedBytes += bytes;
      report();
    },
  });
  const onProgress: ConvertOptions['onProgress'] = (progress) => {
    report = () => options.onProgress?.({ phase: 'layers', ...progress, fetchedBytes });
    report();
  };
  try {
    const { layersDir, log, sizeBytes, startState, limits, signal } = options;
    return await convertImage(
      { config: image.config, layers: spool.layers },
      {
        ...{ layersDir, log, onProgress },
        ...(sizeBytes === undefined ? {} : { sizeBytes }),
        ...(startState === undefined ? {} : { startState }),
        ...(limits === undefined ? {} : { limits }),
        ...(signal === undefined ? {} : { signal }),
      },
    );
  } finally {
    await spool.close();
  }
}

async function takeOver(
  image: ResolvedImage,
  options: PullOptions,
): Promise<Omit<PulledImage, 'name' | 'digest' | 'config'>> {
  const totalBytes = image.layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  let fetchedBytes = 0;
  const taken = await takeBlockImage(image, options, (at, bytes) => {
    fetchedBytes += bytes;
    options.onProgress?.({
      ...{ phase: 'layers', layer: at + 1, layers: image.layers.length },
      ...{ fetchedBytes, doneBytes: fetchedBytes, totalBytes },
    });
  });
  return { ...taken, start: { ...taken.start, envVars: image.config.env } };
}
