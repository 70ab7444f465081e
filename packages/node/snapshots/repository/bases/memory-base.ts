import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { SnapshotManifest } from '../../contract.ts';
import { corrupt } from '../corrupt.ts';

/** Bytes of a chunk of guest memory; the last one of a memory may be shorter. */
export const CHUNK_BYTES = 4 * 2 ** 20;
/** Bytes of the largest memory: 1 TiB. */
const MAX_MEMORY = 2 ** 40;

/** The content of a guest's memory, as the digests of its chunks. Chunks of zeros are absent. */
export interface MemoryBase {
  /** of its own manifest, 64 hex digits */
  readonly digest: string;
  readonly sizeBytes: number;
  /** by their position; sha256 of the content, 64 hex digits */
  readonly chunks: ReadonlyMap<number, string>;
}

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const BaseManifest = z.strictObject({
  format: z.literal('aenv-memory-base'),
  version: z.literal(1),
  sizeBytes: z.int().positive().max(MAX_MEMORY).multipleOf(4096),
  chunkBytes: z.literal(CHUNK_BYTES),
  /** position and digest, ascending */
  chunks: z.array(z.tuple([z.int().nonnegative(), Sha256])),
});
type BaseManifest = z.infer<typeof BaseManifest>;

/** @returns the base, and the bytes that its digest is of */
export function describeBase(sizeBytes: number, chunks: ReadonlyMap<number, string>): [MemoryBase, Buffer] {
  const manifest: BaseManifest = {
    format: 'aenv-memory-base',
    version: 1,
    sizeBytes,
    chunkBytes: CHUNK_BYTES,
    chunks: [...chunks].sort(([a], [b]) => a - b),
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return [{ digest: sha256(bytes), sizeBytes, chunks: new Map(manifest.chunks) }, bytes];
}

/** @throws AenvError `snapshot_corrupt` if these are not the bytes that the digest is of */
export function parseBase(bytes: Buffer, digest: string): MemoryBase {
  const artefact = baseManifestName(digest);
  if (sha256(bytes) !== digest) throw corrupt(artefact, 'its digest does not hold');
  const { sizeBytes, chunks } = BaseManifest.parse(JSON.parse(bytes.toString()));
  const count = chunkCount(sizeBytes);
  const isAscending = chunks.every(([index], i) => index < count && (i === 0 || index > (chunks[i - 1]?.[0] ?? -1)));
  if (!isAscending) throw corrupt(artefact, 'its chunks are not in order');
  return { digest, sizeBytes, chunks: new Map(chunks) };
}

/** Digest of a snapshot's memory base, as bases name it. */
export function baseOf({ memory }: Pick<SnapshotManifest, 'memory'>): string {
  return memory.base.replace(/^sha256:/, '');
}

export function baseManifestName(digest: string): string {
  return `manifest of memory base ${digest}`;
}

export function chunkCount(sizeBytes: number): number {
  return Math.ceil(sizeBytes / CHUNK_BYTES);
}

/** Bytes of one chunk of a memory of this size. */
export function chunkSize(sizeBytes: number, index: number): number {
  return Math.min(CHUNK_BYTES, sizeBytes - index * CHUNK_BYTES);
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
