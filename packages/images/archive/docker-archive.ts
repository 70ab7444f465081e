import { createHash } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { decompress } from '../layers/decompress.ts';
import { requireDigest, verified } from '../oci/digest.ts';
import { MAX_JSON, type OciImage, type OciLayer, parseDocument, toJson } from '../oci/find-image.ts';
import { toImageConfig } from '../oci/image-config.ts';
import { hostPlatform, type Platform, platformName, runsOn } from '../oci/platform.ts';
import { configSchema } from '../oci/schemas.ts';
import { TarFile } from './tar-file.ts';

/** `manifest.json` of `docker save` (image specification 1.2, "Combined Image JSON + Filesystem Changeset Format"). */
const manifestSchema = z
  .array(
    z.object({
      Config: z.string().max(4096),
      RepoTags: z.array(z.string()).nullish(),
      Layers: z.array(z.string().max(4096)).max(512),
    }),
  )
  .max(1024);

export interface DockerArchiveOptions {
  readonly platform?: Platform;
  /** NAME:TAG of one of its images; absent: there must be only one */
  readonly ref?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads an image from an archive of `docker save`. Such an archive names no digests of its layers, but those of their
 * uncompressed form in the configuration: a layer's `digest` is its `diffId` here, and it opens uncompressed.
 * @throws AenvError `image_invalid`, `image_platform_missing`, `image_not_found`
 */
export async function readDockerArchive(path: string, options: DockerArchiveOptions = {}): Promise<OciImage> {
  const archive = await TarFile.open(path, options.signal);
  const list = parseDocument(manifestSchema, await json(archive, 'manifest.json'), 'manifest.json');
  const named = list.filter((image) => options.ref === undefined || (image.RepoTags ?? []).includes(options.ref));
  const [image] = named;
  const tags = list.flatMap((one) => one.RepoTags ?? []).slice(0, 20);
  if (image === undefined) {
    throw new AenvError(
      'image_not_found',
      `${path} has no image ${options.ref ?? ''}: it has ${tags.join(', ') || 'none'}`,
    );
  }
  if (named.length > 1) {
    throw new AenvError('image_invalid', `${path} has several images: ${tags.join(', ')}`, {
      remediation: 'Name one of them: docker-archive:FILE:NAME:TAG.',
    });
  }
  const data = await whole(archive, image.Config);
  const config = parseDocument(configSchema, toJson(data, image.Config), image.Config);
  const wanted = options.platform ?? hostPlatform();
  if (!runsOn(config, wanted)) {
    throw new AenvError(
      'image_platform_missing',
      `no image for ${platformName(wanted)} in ${path}: it has ${platformName(config)}`,
    );
  }
  const ids = config.rootfs.diff_ids;
  if (ids.length !== image.Layers.length) {
    throw new AenvError(
      'image_invalid',
      `${image.Config} has ${ids.length} layers, manifest.json ${image.Layers.length}`,
    );
  }
  return {
    // What Docker calls the id of the image: there is no manifest that would have a digest.
    digest: `sha256:${createHash('sha256').update(data).digest('hex')}`,
    config: toImageConfig(config),
    layers: image.Layers.map((name, at) => layer(archive, name, ids[at] ?? '')),
  };
}

function layer(archive: TarFile, name: string, diffId: string): OciLayer {
  const digest = requireDigest(diffId);
  const sizeBytes = archive.size(name);
  if (sizeBytes === undefined)
    throw new AenvError('image_invalid', `${name.slice(0, 200)} is missing in ${archive.path}`);
  return {
    digest: diffId,
    diffId,
    sizeBytes,
    form: 'tar',
    open: (signal) =>
      verified(decompress(archive.read(name, signal)), digest, undefined, `layer ${name.slice(0, 200)}`),
  };
}

async function json(archive: TarFile, name: string): Promise<unknown> {
  return toJson(await whole(archive, name), name);
}

async function whole(archive: TarFile, name: string): Promise<Buffer> {
  if ((archive.size(name) ?? 0) > MAX_JSON) {
    throw new AenvError('image_invalid', `${name.slice(0, 200)} is larger than ${MAX_JSON} bytes`);
  }
  const chunks: Buffer[] = [];
  for await (const chunk of archive.read(name)) chunks.push(chunk);
  return Buffer.concat(chunks);
}
