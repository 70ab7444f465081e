import { createHash } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from './contract.ts';

const CHUNK = 2 ** 20;

/** @returns `sha256:` and 64 hex digits, of all bytes of the blob */
export async function digestOf(blob: BlobSource, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, blob.size));
  for (let at = 0; at < blob.size; at += CHUNK) {
    signal?.throwIfAborted();
    const chunk = buffer.subarray(0, Math.min(CHUNK, blob.size - at));
    await blob.read(chunk, at, signal);
    hash.update(chunk);
  }
  return `sha256:${hash.digest('hex')}`;
}

/**
 * Data of a plain layer has no checksums: its digest is what finds a damaged byte.
 * @throws AenvError `layer_corrupt`
 */
export async function verifyDigest(blob: BlobSource, digest: string, signal?: AbortSignal): Promise<void> {
  const actual = await digestOf(blob, signal);
  if (actual !== digest) throw new AenvError('layer_corrupt', `a layer should have ${digest}, and has ${actual}`);
}
