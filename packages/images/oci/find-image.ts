import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { z } from 'zod';
import { requireDigest } from './digest.ts';
import { type ImageConfig, toImageConfig } from './image-config.ts';
import { type LayerForm, layerForm } from './layer-form.ts';
import { type Platform, platformName, runsOn } from './platform.ts';
import {
  configSchema,
  type Descriptor,
  indexSchema,
  MEDIA_TYPES,
  manifestSchema,
  type RawImageConfig,
} from './schemas.ts';

/** Limits of JSON blobs in bytes; registries have the same one for manifests. */
export const MAX_JSON = 4 * 1024 * 1024;
const MAX_DEPTH = 4;
/** Descriptors looked at while searching for a platform. */
const MAX_CANDIDATES = 1024;

export interface OciImage {
  /** of the manifest, the name under which results are kept */
  readonly digest: string;
  readonly config: ImageConfig;
  /** lowest first */
  readonly layers: readonly OciLayer[];
}

export interface OciLayer {
  /** of the blob as it is stored */
  readonly digest: string;
  /** digest of the uncompressed archive */
  readonly diffId: string;
  readonly sizeBytes: number;
  readonly form: LayerForm;
  /**
   * The blob as it is stored. Its end is reached only when digest and size are right, so nothing of it counts before.
   * @throws AenvError `image_invalid` or `digest_mismatch`; what its source fails with; the signal's reason
   */
  open(signal?: AbortSignal): AsyncIterable<Uint8Array>;
}

/** Where the documents and the layers of an image are. Everything that it gives is verified. */
export interface ContentStore {
  /** for messages: `the layout`, `docker.io/library/debian` */
  readonly name: string;
  /** A JSON document of at most `MAX_JSON` bytes. */
  document(descriptor: Descriptor, kind: 'manifest' | 'config', signal?: AbortSignal): Promise<Buffer>;
  layer(descriptor: Descriptor, signal?: AbortSignal): AsyncIterable<Uint8Array>;
}

export interface FindOptions {
  readonly platform: Platform;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds the image for a platform: manifests, indexes, and indexes within indexes, in their order. Attestations
 * (`unknown/unknown`) are passed over.
 * @throws AenvError `image_platform_missing` with those that are there; `image_invalid`: damaged or of an unsupported kind
 */
export async function findImage(
  store: ContentStore,
  descriptors: readonly Descriptor[],
  options: FindOptions,
): Promise<OciImage> {
  const search = new Search(store, options);
  const found = await search.among(descriptors, 0);
  if (found !== undefined) return found;
  const wanted = platformName(options.platform);
  if (search.seen.size === 0)
    throw new AenvError('image_invalid', `no image for ${wanted} in ${store.name}: it holds no image`);
  const others = [...search.seen].sort().join(', ');
  throw new AenvError('image_platform_missing', `no image for ${wanted} in ${store.name}: it has ${others}`);
}

class Search {
  readonly seen = new Set<string>();
  readonly #store: ContentStore;
  readonly #options: FindOptions;
  #candidates = 0;

  constructor(store: ContentStore, options: FindOptions) {
    this.#store = store;
    this.#options = options;
  }

  async among(descriptors: readonly Descriptor[], depth: number): Promise<OciImage | undefined> {
    if (depth > MAX_DEPTH) throw new AenvError('image_invalid', `indexes nested deeper than ${MAX_DEPTH}`);
    for (const descriptor of descriptors) {
      if (++this.#candidates > MAX_CANDIDATES) {
        throw new AenvError('image_invalid', `too many manifests in ${this.#store.name}`);
      }
      const found = await this.#look(descriptor, depth);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #look(descriptor: Descriptor, depth: number): Promise<OciImage | undefined> {
    if (MEDIA_TYPES.indexes.includes(descriptor.mediaType)) {
      const index = parseDocument(indexSchema, await this.#json(descriptor, 'manifest'), descriptor.digest);
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
    const manifest = parseDocument(manifestSchema, await this.#json(descriptor, 'manifest'), descriptor.digest);
    // Signatures and other artefacts come as manifests whose config is no image configuration.
    if (!MEDIA_TYPES.configs.includes(manifest.config.mediaType)) return undefined;
    const config = parseDocument(configSchema, await this.#json(manifest.config, 'config'), manifest.config.digest);
    if (!this.#fits(config)) return undefined;
    return imageOf(this.#store, descriptor.digest, config, manifest.layers);
  }

  #fits(platform: Platform): boolean {
    if (runsOn(platform, this.#options.platform)) return true;
    if (platform.os !== 'unknown') this.seen.add(platformName(platform));
    return false;
  }

  async #json(descriptor: Descriptor, kind: 'manifest' | 'config'): Promise<unknown> {
    requireDigest(descriptor.digest);
    if (descriptor.size > MAX_JSON) {
      throw new AenvError('image_invalid', `${descriptor.digest} is a JSON document of ${descriptor.size} bytes`);
    }
    return toJson(await this.#store.document(descriptor, kind, this.#options.signal), descriptor.digest);
  }
}

function imageOf(store: ContentStore, digest: string, config: RawImageConfig, layers: readonly Descriptor[]): OciImage {
  const ids = config.rootfs.diff_ids;
  if (ids.length !== layers.length) {
    throw new AenvError('image_invalid', `${digest} has ${layers.length} layers, its config ${ids.length}`);
  }
  return {
    digest,
    config: toImageConfig(config),
    layers: layers.map((layer, at) => {
      requireDigest(layer.digest);
      const diffId = ids[at] ?? '';
      requireDigest(diffId);
      return {
        digest: layer.digest,
        diffId,
        sizeBytes: layer.size,
        form: layerForm(layer),
        open: (signal) => store.layer(layer, signal),
      };
    }),
  };
}

/** @throws AenvError `image_invalid` */
export function toJson(data: Buffer, what: string): unknown {
  try {
    return JSON.parse(data.toString('utf8'));
  } catch (error) {
    throw new AenvError('image_invalid', `${what} is no JSON: ${String(error).slice(0, 200)}`, { cause: error });
  }
}

/** @throws AenvError `image_invalid`, naming the member that is wrong */
export function parseDocument<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new AenvError('image_invalid', `${what}: ${issue?.path.join('.') || 'document'}: ${issue?.message ?? 'bad'}`);
}
