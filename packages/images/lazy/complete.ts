import { createHash } from 'node:crypto';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { requireDigest } from '../oci/digest.ts';
import type { CachedBlob } from './cached-blob.ts';
import { CHUNK } from './geometry.ts';

/** How far ahead of the hash is fetched, in bytes. */
const AHEAD = CHUNK;
const STEP = 1024 * 1024;

/**
 * Fetches all of a blob behind what guests wait for, and compares its digest. What is not kept, for want of space, is
 * verified nevertheless: its checksums are remembered, and what is fetched again must have them.
 * @throws AenvError `digest_mismatch`: from then on the blob gives `layer_corrupt`, and nothing of it is kept;
 *   `layer_unavailable`; the signal's reason
 */
export async function completeBlob(blob: CachedBlob, signal: AbortSignal): Promise<void> {
  const { header } = blob.store.folder;
  if (header.verified) return;
  const digest = requireDigest(header.digest);
  const hash = createHash(digest.algorithm);
  const window: Promise<Buffer>[] = [];
  for (let at = 0, next = 0; at < blob.size; at += STEP) {
    for (; next < Math.min(blob.size, at + AHEAD); next += STEP) window.push(piece(blob, next));
    signal.throwIfAborted();
    const data = await window.shift();
    if (data !== undefined) hash.update(data);
  }
  const hex = hash.digest('hex');
  if (hex === digest.hex) return blob.store.folder.setVerified();
  const found = `${digest.algorithm}:${hex}`;
  const message = `blob ${header.digest} has the digest ${found} in its registry`;
  blob.condemn(new AenvError('layer_corrupt', message));
  // What is still coming would be kept after the rest has gone.
  await blob.idle();
  await blob.store.clear();
  throw new AenvError('digest_mismatch', message);
}

function piece(blob: CachedBlob, offset: number): Promise<Buffer> {
  const data = Buffer.allocUnsafe(Math.min(STEP, blob.size - offset));
  const reading = blob.read(data, offset, 'background').then(() => data);
  // Whoever comes to it sees the failure; the others before it may come first.
  reading.catch(() => {});
  return reading;
}
