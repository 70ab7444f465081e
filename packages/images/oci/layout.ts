import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { z } from 'zod';
import { isCode } from '../errors/is-code.ts';
import { requireDigest, verified } from './digest.ts';
import { type ImageConfig, toImageConfig } from './image-config.ts';
import { hostPlatform, type Platform, platformName, runsOn } from './platform.ts';
import {
  configSchema,
  type Descriptor,
  type descriptorSchema,
  indexSchema,
  layoutSchema,
  MEDIA_TYPES,
  manifestSchema,
  type RawImageConfig,
} from './schemas.ts';

/** Limits of JSON blobs in bytes; registries have the same one for manifests. */
const MAX_JSON = 4 * 1024 * 1024;
const MAX_DEPTH = 4;
/** Descriptors looked at while searching for a platform. */
const MAX_CANDIDATES = 1024;

export interface OciImage {
  /** of the manifest, the name under which results are kept */
  readonly digest: string;
  readonly config: ImageConfig;
  readonly layers: readonly OciLayer[];
}

export interface OciLayer {
  readonly digest: string;
  /** digest of the uncompressed archive */
  readonly diffId: string;
  readonly sizeBytes: number;
  /** The blob as it is stored; throws `image_invalid` at its end when digest or size differ. */
  open(): AsyncIterable<Uint8Array>;
}

export interface ResolveOptions {
  readonly platform?: Platform;
  /** only images with this `org.opencontainers.image.ref.name`; default is the first that fits */
  readonly ref?: string;
}

/**
 * Finds the image for a platform in an OCI image layout folder: `index.json`, then indexes within indexes, then a
 * manifest. Attestations (`unknown/unknown`) are passed over. Every blob is checked against its digest and size.
 * @throws AenvError `image_invalid`: damaged, of an unsupported kind, or only for other platforms, which it lists
 */
export async function readOciLayout(dir: string, options: ResolveOptions = {}): Promise<OciImage> {
  parse(layoutSchema, await readJson(join(dir, 'oci-layout'), 'oci-layout'), 'oci-layout');
  const index = parse(indexSchema, await readJson(join(dir, 'index.json'), 'index.json'), 'index.json');
  const wanted = options.ref;
  const top =
    wanted === undefined
      ? index.manifests
      : index.manifests.filter((entry) => entry.annotations?.['org.opencontainers.image.ref.name'] === wanted);
  const search = new Search(dir, options.platform ?? hostPlatform());
  const found = await search.among(top, 0);
  if (found !== undefined) return found;
  const others = search.seen.size === 0 ? 'it holds no image' : `it has ${[...search.seen].sort().join(', ')}`;
  throw new AenvError('image_invalid', `no image for ${platformName(search.platform)} in the layout: ${others}`);
}

class Search {
  readonly dir: string;
  readonly platform: Platform;
  readonly seen = new Set<string>();
  #candidates = 0;

  constructor(dir: string, platform: Platform) {
    this.dir = dir;
    this.platform = platform;
  }

  async among(descriptors: readonly Descriptor[], depth: number): Promise<OciImage | undefined> {
    if (depth > MAX_DEPTH) throw new AenvError('image_invalid', `indexes nested deeper than ${MAX_DEPTH}`);
    for (const descriptor of descriptors) {
      if (++this.#candidates > MAX_CANDIDATES) throw new AenvError('image_invalid', 'too many manifests in the layout');
      const found = await this.#look(descriptor, depth);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #look(descriptor: Descriptor, depth: number): Promise<OciImage | undefined> {
    if (MEDIA_TYPES.indexes.includes(descriptor.mediaType)) {
      const index = parse(indexSchema, await this.#json(descriptor), descriptor.digest);
      return this.among(index.manifests, depth + 1);
    }
    if (!MEDIA_TYPES.manifests.includes(descriptor.mediaType)) {
      if (descriptor.mediaType.startsWith('application/vnd.docker.distribution.manifest.v1')) {
        throw new AenvError('image_invalid', 'the image has the old Docker schema 1, which is not supported', {
          remediation: 'Push it again with a current tool; it then has schema 2 or OCI form.',
        });
      }
      return undefined;
    }
    if (descriptor.platform !== undefined && !this.#fits(descriptor.platform)) return undefined;
    const manifest = parse(manifestSchema, await this.#json(descriptor), descriptor.digest);
    // Signatures and other artefacts come as manifests whose config is no image configuration.
    if (!MEDIA_TYPES.configs.includes(manifest.config.mediaType)) return undefined;
    const config = parse(configSchema, await this.#json(manifest.config), manifest.config.digest);
    if (!this.#fits(config)) return undefined;
    return this.#image(descriptor.digest, config, manifest.layers);
  }

  #fits(platform: Platform): boolean {
    if (runsOn(platform, this.platform)) return true;
    if (platform.os !== 'unknown') this.seen.add(platformName(platform));
    return false;
  }

  #image(digest: string, config: RawImageConfig, layers: readonly Descriptor[]): OciImage {
    const ids = config.rootfs.diff_ids;
    if (ids.length !== layers.length) {
      throw new AenvError('image_invalid', `${digest} has ${layers.length} layers, its config ${ids.length}`);
    }
    return {
      digest,
      config: toImageConfig(config),
      layers: layers.map((layer, at) => {
        if (/\+encrypted$|foreign/.test(layer.mediaType)) {
          throw new AenvError('image_invalid', `layer ${layer.digest} has the unsupported type ${layer.mediaType}`);
        }
        requireDigest(layer.digest);
        const diffId = ids[at] ?? '';
        requireDigest(diffId);
        return { digest: layer.digest, diffId, sizeBytes: layer.size, open: () => openBlob(this.dir, layer) };
      }),
    };
  }

  async #json(descriptor: Descriptor): Promise<unknown> {
    if (descriptor.size > MAX_JSON) {
      throw new AenvError('image_invalid', `${descriptor.digest} is a JSON document of ${descriptor.size} bytes`);
    }
    const chunks: Uint8Array[] = [];
    for await (const chunk of openBlob(this.dir, descriptor)) chunks.push(chunk);
    return toJson(Buffer.concat(chunks), descriptor.digest);
  }
}

async function* openBlob(dir: string, descriptor: z.infer<typeof descriptorSchema>): AsyncGenerator<Uint8Array> {
  const digest = requireDigest(descriptor.digest);
  const file = join(dir, 'blobs', digest.algorithm, digest.hex);
  const stream = createReadStream(file, { highWaterMark: 256 * 1024 });
  try {
    yield* verified(stream, digest, descriptor.size, `blob ${descriptor.digest}`);
  } catch (error) {
    if (isCode(error, 'ENOENT')) throw new AenvError('image_invalid', `blob ${descriptor.digest} is missing`);
    throw error;
  } finally {
    stream.destroy();
  }
}

async function readJson(path: string, what: string): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  try {
    if ((await stat(path)).size > MAX_JSON)
      throw new AenvError('image_invalid', `${what} is larger than ${MAX_JSON} bytes`);
    for await (const chunk of createReadStream(path, { end: MAX_JSON })) chunks.push(chunk);
  } catch (error) {
    if (isCode(error, 'ENOENT')) throw new AenvError('image_invalid', `no OCI image layout: ${what} is missing`);
    throw error;
  }
  return toJson(Buffer.concat(chunks), what);
}

function toJson(data: Buffer, what: string): unknown {
  try {
    return JSON.parse(data.toString('utf8'));
  } catch (error) {
    throw new AenvError('image_invalid', `${what} is no JSON: ${String(error)}`, { cause: error });
  }
}

function parse<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new AenvError('image_invalid', `${what}: ${issue?.path.join('.') || 'document'}: ${issue?.message ?? 'bad'}`);
}
