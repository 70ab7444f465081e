import { createHash } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { parseDigest, requireDigest } from '../oci/digest.ts';
import { MEDIA_TYPES } from '../oci/schemas.ts';
import { readBounded } from './http/bounded.ts';
import type { Session } from './session.ts';

/** "A registry SHOULD enforce some limit … 4 megabytes" (distribution specification, "Pushing Manifests"). */
export const MAX_MANIFEST = 4 * 1024 * 1024;
const MANIFEST_MS = 60_000;

export interface Document {
  readonly mediaType: string;
  readonly digest: string;
  readonly data: Buffer;
}

/**
 * Gets a manifest or an index by tag or by digest.
 * @throws AenvError `digest_mismatch`; `image_invalid` when it is too large; what `Session.get` throws
 */
export async function getManifest(session: Session, name: string, signal?: AbortSignal): Promise<Document> {
  const limit = AbortSignal.timeout(MANIFEST_MS);
  const accept = [...MEDIA_TYPES.manifests, ...MEDIA_TYPES.indexes].join(', ');
  try {
    const response = await session.get(`manifests/${name}`, {
      headers: { accept },
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    const data = await readBounded(response, MAX_MANIFEST, `manifest ${name}`);
    const digest = checkedDigest(session, name, response.header('docker-content-digest'), data);
    const header = (response.header('content-type') ?? '').replace(/;.*$/s, '').trim().toLowerCase();
    return { mediaType: header, digest, data };
  } catch (error) {
    if (!limit.aborted || signal?.aborted) throw error;
    throw new AenvError('registry_unavailable', `${session.host}: manifest ${name} did not come in time`);
  }
}

/** The digest that the document was asked for by, or that it has, compared with what the registry says of it. */
function checkedDigest(session: Session, name: string, announced: string | undefined, data: Buffer): string {
  const wanted = parseDigest(name) ?? parseDigest(announced ?? '');
  const algorithm = wanted?.algorithm ?? 'sha256';
  const hex = createHash(algorithm).update(data).digest('hex');
  if (wanted !== undefined && wanted.hex !== hex) {
    const expected = `${wanted.algorithm}:${wanted.hex}`;
    throw new AenvError(
      'digest_mismatch',
      `manifest from ${session.host} has the digest ${algorithm}:${hex} instead of ${expected}`,
    );
  }
  return `${algorithm}:${hex}`;
}

/** A JSON blob (the configuration of an image), all of it verified. */
export async function getSmallBlob(
  chunks: AsyncIterable<Buffer>,
  blob: { readonly digest: string; readonly size: number },
): Promise<Buffer> {
  requireDigest(blob.digest);
  if (blob.size > MAX_MANIFEST) {
    throw new AenvError('image_invalid', `${blob.digest} is a JSON document of ${blob.size} bytes`);
  }
  const parts: Buffer[] = [];
  for await (const part of chunks) parts.push(part);
  return Buffer.concat(parts);
}
