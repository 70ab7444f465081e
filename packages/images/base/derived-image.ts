import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { assetFolder } from '../cache/asset-folder.ts';
import { readOciLayout } from '../oci/layout.ts';
import { hostPlatform } from '../oci/platform.ts';
import { type LayerBlob, writeImage } from '../oci/write-layout.ts';

export interface DerivedImageOptions {
  /** content-addressed cache */
  readonly assetsDir: string;
  /** layout of the image below */
  readonly baseDir: string;
  /** on top of it, lowest first; on the same file system as the cache */
  readonly layers: readonly LayerBlob[];
  /** members of the image configuration's `config` */
  readonly config: Readonly<Record<string, unknown>>;
  /** seconds, for the image's creation time */
  readonly epoch: number;
  readonly signal?: AbortSignal;
}

/**
 * An image made of another one and further layers, as an OCI image layout of its own in which all layers are links.
 * @throws AenvError `image_invalid`
 */
export async function ensureDerivedImage(
  options: DerivedImageOptions,
): Promise<{ readonly layoutDir: string; readonly digest: string }> {
  const { assetsDir, baseDir, config, epoch, signal } = options;
  const base = await readOciLayout(baseDir, { signal });
  const below: readonly LayerBlob[] = base.layers.map(({ digest, diffId, sizeBytes }) => {
    return { dir: join(baseDir, 'blobs', 'sha256'), digest, diffId, size: sizeBytes };
  });
  const layers = [...below, ...options.layers];
  const platform = hostPlatform();
  const inputs = { layers: layers.map(({ digest }) => digest), config, epoch, platform };
  const key = createHash('sha256').update(JSON.stringify(inputs)).digest('hex');
  const layoutDir = await assetFolder(join(assetsDir, 'builtin-images'), key, async (result) => {
    await writeImage(result, layers, { platform, config, created: new Date(epoch * 1000).toISOString() });
  });
  return { layoutDir, digest: (await readOciLayout(layoutDir, { signal })).digest };
}
