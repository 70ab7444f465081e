import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { type ContentStore, parseDocument, toJson } from '../oci/find-image.ts';
import { type Descriptor, MEDIA_TYPES } from '../oci/schemas.ts';
import type { Document } from '../registry/manifest.ts';
import type { Repository } from '../registry/repository.ts';

/** The documents and layers of one repository of a registry. */
export class RegistryStore implements ContentStore {
  readonly name: string;
  readonly #repository: Repository;
  readonly #known = new Map<string, Buffer>();

  /** @param name for messages */
  constructor(name: string, repository: Repository) {
    this.name = name;
    this.#repository = repository;
  }

  /** The descriptor of what a tag or a digest names. */
  async top(name: string, signal?: AbortSignal): Promise<Descriptor> {
    const document = await this.#repository.manifest(name, signal);
    this.#known.set(document.digest, document.data);
    return { mediaType: mediaTypeOf(document), digest: document.digest, size: document.data.length };
  }

  async document(descriptor: Descriptor, kind: 'manifest' | 'config', signal?: AbortSignal): Promise<Buffer> {
    if (kind === 'config') return this.#repository.document(descriptor, signal);
    const data =
      this.#known.get(descriptor.digest) ?? (await this.#repository.manifest(descriptor.digest, signal)).data;
    if (data.length === descriptor.size) return data;
    throw new AenvError('image_invalid', `${descriptor.digest} has ${data.length} bytes instead of ${descriptor.size}`);
  }

  layer(descriptor: Descriptor, signal?: AbortSignal): AsyncIterable<Uint8Array> {
    return this.#repository.blob(descriptor, signal);
  }
}

const kindSchema = z.object({
  schemaVersion: z.int(),
  mediaType: z.string().optional(),
  manifests: z.unknown().optional(),
  layers: z.unknown().optional(),
  fsLayers: z.unknown().optional(),
});

/**
 * What a document is: by what it says of itself, else by its header, else by its members. A document that could be read
 * in two ways is refused, since two readers might see two images in it (CVE-2021-41190).
 */
function mediaTypeOf(document: Document): string {
  const value = parseDocument(kindSchema, toJson(document.data, document.digest), document.digest);
  if (value.manifests !== undefined && value.layers !== undefined) {
    throw new AenvError('image_invalid', `${document.digest} is an index and a manifest at the same time`);
  }
  if (value.schemaVersion === 1) return 'application/vnd.docker.distribution.manifest.v1+json';
  if (value.mediaType !== undefined) return value.mediaType;
  const known = [...MEDIA_TYPES.indexes, ...MEDIA_TYPES.manifests];
  if (known.includes(document.mediaType)) return document.mediaType;
  return value.manifests === undefined
    ? 'application/vnd.oci.image.manifest.v1+json'
    : 'application/vnd.oci.image.index.v1+json';
}
