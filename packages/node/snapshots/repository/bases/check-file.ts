import { open } from 'node:fs/promises';
import { corrupt } from '../corrupt.ts';
import { inParallel } from '../in-parallel.ts';
import { ChunkBuffers } from './chunk-buffers.ts';
import { CHUNK_BYTES, chunkCount, chunkSize, type MemoryBase } from './memory-base.ts';
import { isZero, readFully, sha256 } from './pages.ts';

const PARALLEL = 2;

/**
 * Reads all of a base's file and compares it with the digests of its chunks.
 * @throws AenvError `snapshot_corrupt` naming the place
 */
export async function checkBaseFile(path: string, base: MemoryBase): Promise<void> {
  const artefact = `file of memory base ${base.digest}`;
  await using file = await open(path);
  const { size } = await file.stat();
  if (size !== base.sizeBytes) throw corrupt(artefact, `it has ${size} bytes, not ${base.sizeBytes}`);
  const buffers = new ChunkBuffers();
  await inParallel(Array(chunkCount(size)).keys(), PARALLEL, async (index) => {
    const chunk = buffers.take(chunkSize(size, index));
    await readFully(file, chunk, index * CHUNK_BYTES, path);
    const wanted = base.chunks.get(index);
    const isRight = wanted === undefined ? isZero(chunk) : (await sha256(chunk)) === wanted;
    buffers.giveBack(chunk);
    if (!isRight) throw corrupt(artefact, `what is at ${index * CHUNK_BYTES} is not what was written`);
  });
}
