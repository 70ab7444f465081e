import { isZero, sha256 } from '../bases/pages.ts';
import { corrupt } from '../corrupt.ts';
import { decodeChunk, encodeChunk } from './codec.ts';
import type { ChunkStore } from './contract.ts';

/**
 * Keeps a chunk of guest memory.
 * @returns its digest; undefined for zeros, which need not be kept
 */
export async function keepChunk(store: ChunkStore, bytes: Uint8Array): Promise<string | undefined> {
  if (isZero(bytes)) return undefined;
  const digest = await sha256(bytes);
  if (!(await store.has(digest))) await store.put(digest, await encodeChunk(bytes));
  return digest;
}

/**
 * @param size bytes that the chunk must have
 * @throws AenvError `snapshot_corrupt` if it is missing, or not what was kept
 */
export async function fetchChunk(store: ChunkStore, digest: string, size: number): Promise<Buffer> {
  const artefact = `memory chunk ${digest}`;
  const encoded = await store.get(digest);
  if (encoded === undefined) throw corrupt(artefact, 'it is missing');
  const bytes = await decodeChunk(encoded, size);
  if (bytes === undefined) throw corrupt(artefact, 'its checksum does not hold');
  if ((await sha256(bytes)) !== digest) throw corrupt(artefact, 'its digest does not hold');
  return bytes;
}
