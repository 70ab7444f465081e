import { createHash, type Hash } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const LENGTHS = { sha256: 64, sha512: 128 } as const;

export interface Digest {
  readonly algorithm: keyof typeof LENGTHS;
  /** lower case */
  readonly hex: string;
}

/**
 * Parses `sha256:<64 hex>` or `sha512:<128 hex>` (OCI "Descriptors", Digests). Strict, because digests become file names.
 * @returns undefined for anything else
 */
export function parseDigest(text: string): Digest | undefined {
  const match = /^(sha256|sha512):([0-9a-f]+)$/.exec(text);
  const algorithm = match?.[1] as Digest['algorithm'] | undefined;
  const hex = match?.[2];
  if (algorithm === undefined || hex === undefined || hex.length !== LENGTHS[algorithm]) return undefined;
  return { algorithm, hex };
}

/** @throws AenvError `image_invalid` */
export function requireDigest(text: string): Digest {
  const digest = parseDigest(text);
  if (digest === undefined) {
    throw new AenvError('image_invalid', `not a digest: ${JSON.stringify(text.slice(0, 160))}`);
  }
  return digest;
}

/**
 * Passes a stream on and compares it at the end with what was announced, so a reader that takes everything knows that it
 * got the right bytes.
 * @param size announced size in bytes; undefined when only the digest is known
 * @throws AenvError `image_invalid` with both digests
 */
export async function* verified(
  source: AsyncIterable<Uint8Array>,
  digest: Digest,
  size: number | undefined,
  what: string,
): AsyncGenerator<Uint8Array> {
  const hash: Hash = createHash(digest.algorithm);
  let seen = 0;
  for await (const chunk of source) {
    seen += chunk.length;
    if (size !== undefined && seen > size) throw sizeMismatch(what, size, `more than ${size}`);
    hash.update(chunk);
    yield chunk;
  }
  if (size !== undefined && seen !== size) throw sizeMismatch(what, size, String(seen));
  const hex = hash.digest('hex');
  if (hex !== digest.hex) {
    throw new AenvError(
      'image_invalid',
      `${what} has the digest ${digest.algorithm}:${hex} instead of ${digest.algorithm}:${digest.hex}`,
    );
  }
}

function sizeMismatch(what: string, announced: number, found: string): AenvError {
  return new AenvError('image_invalid', `${what} has ${found} bytes instead of ${announced}`);
}
