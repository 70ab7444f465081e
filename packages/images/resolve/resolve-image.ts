import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { readDockerArchive } from '../archive/docker-archive.ts';
import { readOciArchive } from '../archive/oci-archive.ts';
import { findImage, type OciImage } from '../oci/find-image.ts';
import { readOciLayout } from '../oci/layout.ts';
import { hostPlatform, type Platform } from '../oci/platform.ts';
import { formatReference, type RegistryReference } from '../reference/reference.ts';
import { type ImageSource, parseSource } from '../reference/source.ts';
import type { RegistryClient } from '../registry/client.ts';
import type { Credentials } from '../registry/credentials/contract.ts';
import type { ResolvedImage } from './contract.ts';
import { RegistryStore } from './registry-store.ts';

export interface ResolveImageOptions {
  readonly client: RegistryClient;
  /** default: that of this host's guests */
  readonly platform?: Platform;
  /** whether the name may lead to files of this host: see `parseSource` */
  readonly allowLocal?: boolean;
  /** for the registry of the name, instead of those that Docker's configuration has */
  readonly credentials?: Credentials;
  readonly signal?: AbortSignal;
}

/**
 * From a name to an image: its manifest and configuration, verified, and layers that can be opened.
 * @throws AenvError `image_reference_invalid`, `image_not_found`, `image_platform_missing`, `image_invalid`,
 *   `digest_mismatch`, `forbidden` (not in `registry.allowed`), `registry_*`; the signal's reason
 */
export async function resolveImage(name: string, options: ResolveImageOptions): Promise<ResolvedImage> {
  const { client, allowLocal = false } = options;
  const source = parseSource(name, { search: client.settings.search, allowLocal });
  if (source.kind === 'registry') return firstOf(source.candidates, options);
  const image = await readFiles(source, options);
  return { ...image, name: `${source.kind}:${source.path}@${image.digest}` };
}

function readFiles(
  source: Exclude<ImageSource, { kind: 'registry' }>,
  options: ResolveImageOptions,
): Promise<OciImage> {
  const how = {
    platform: options.platform ?? hostPlatform(),
    signal: options.signal,
    ...(source.ref === undefined ? {} : { ref: source.ref }),
  };
  if (source.kind === 'oci-layout') return readOciLayout(source.path, how);
  return source.kind === 'oci-archive' ? readOciArchive(source.path, how) : readDockerArchive(source.path, how);
}

/**
 * The next candidate counts only when a registry says that it has no such image: one that is down must not lead to an
 * image of the same name from elsewhere.
 */
async function firstOf(candidates: readonly RegistryReference[], options: ResolveImageOptions): Promise<ResolvedImage> {
  const failures: AenvError[] = [];
  for (const reference of candidates) {
    try {
      return await fromRegistry(reference, options);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (candidates.length === 1 || !(error instanceof AenvError) || !isAbsent(error)) throw error;
      failures.push(error);
    }
  }
  const reasons = failures.map((error) => error.message).join('; ');
  throw new AenvError('image_not_found', `the image is in none of the search registries: ${reasons}`);
}

/** Registries that tell nobody what exists answer with a refusal. */
function isAbsent(error: AenvError): boolean {
  return error.code === 'image_not_found' || (error.code === 'registry_auth' && error.details.anonymous === true);
}

async function fromRegistry(reference: RegistryReference, options: ResolveImageOptions): Promise<ResolvedImage> {
  const { client, credentials, signal, platform = hostPlatform() } = options;
  const { host, repository } = reference;
  const { allowed } = client.settings;
  if (allowed !== undefined && !allowed.has(host)) {
    throw new AenvError('forbidden', `images of ${host} are not allowed on this node`, {
      remediation: 'Use a registry of `registry.allowed`, or add this one there.',
    });
  }
  const store = new RegistryStore(formatReference(reference), client.repository(host, repository, credentials));
  const top = await store.top(reference.digest ?? reference.tag ?? 'latest', signal);
  const image = await findImage(store, [top], { platform, signal });
  return {
    ...image,
    name: `${host}/${repository}@${image.digest}`,
    layers: image.layers.map((layer) => ({
      ...layer,
      remote: { host, repository, digest: layer.digest, size: layer.sizeBytes },
    })),
  };
}
