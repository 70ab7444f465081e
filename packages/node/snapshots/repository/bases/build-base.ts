import { type FileHandle, open } from 'node:fs/promises';
import type { MemorySink } from '@aenv/vmm/contract/micro-vm.ts';
import type { ChunkStore } from '../chunks/contract.ts';
import { keepChunk } from '../chunks/memory-chunks.ts';
import type { Faults } from '../faults.ts';
import { BoundedTasks } from '../in-parallel.ts';
import type { BaseFile } from './base-file.ts';
import { ChunkAssembler } from './chunk-assembler.ts';
import { ChunkBuffers } from './chunk-buffers.ts';
import { CHUNK_BYTES, chunkSize, describeBase, type MemoryBase } from './memory-base.ts';
import { readFully } from './pages.ts';

/** Chunks that are packed and written at the same time. */
export const PARALLEL = 4;
/** Chunks after which one that nobody waits for has its file written to the disk. */
const SETTLED = 4;

export interface BuildBaseOptions {
  readonly parent: MemoryBase;
  /** its file, checked; absent for a base of zeros */
  readonly parentFile?: string;
  /** Gives the pages that differ from the parent, in ascending order. */
  readonly give: (sink: MemorySink) => Promise<void>;
  /**
   * Nobody waits for this base, and this is waited for before each part of a chunk. One chunk at a time then, and few of
   * them on their way to the disk: a journal commits in order, so whoever syncs a small file waits for all of a large one,
   * and syncs of four chunks would have all threads of this process.
   */
  readonly pace?: () => Promise<void>;
  readonly chunks: ChunkStore;
  /** becomes the file of the new base */
  readonly file: BaseFile;
  readonly faults: Faults;
}

/**
 * Makes the content of a base of its own out of a base and what differs from it. Chunks without changes are those of the
 * parent, so that only what was changed is hashed, packed and kept.
 */
export async function buildBase(options: BuildBaseOptions): Promise<[MemoryBase, Buffer]> {
  const { parentFile } = options;
  if (parentFile === undefined) return build(options, undefined, '');
  await using file = await open(parentFile);
  return await build(options, file, parentFile);
}

async function build(
  { parent, give, pace, chunks, file, faults }: BuildBaseOptions,
  parentFile: FileHandle | undefined,
  parentPath: string,
): Promise<[MemoryBase, Buffer]> {
  const { sizeBytes } = parent;
  const digests = new Map(parent.chunks);
  const unchanged = new Set(parent.chunks.keys());
  const tasks = new BoundedTasks(pace === undefined ? PARALLEL : 1);
  const buffers = new ChunkBuffers();
  const before = async (index: number) => {
    await pace?.();
    const chunk = buffers.take(chunkSize(sizeBytes, index));
    if (parentFile === undefined || !parent.chunks.has(index)) return chunk.fill(0);
    await readFully(parentFile, chunk, index * CHUNK_BYTES, parentPath);
    return chunk;
  };
  let unsettled = 0;
  const write = async (index: number, chunk: Buffer) => {
    await pace?.();
    await file.write(chunk, index * CHUNK_BYTES);
    buffers.giveBack(chunk);
    if (pace === undefined || ++unsettled < SETTLED) return;
    unsettled = 0;
    await pace();
    await file.settle();
  };
  const keep = async (index: number, chunk: Buffer) => {
    await pace?.();
    const digest = await keepChunk(chunks, chunk);
    if (digest === undefined) digests.delete(index);
    else digests.set(index, digest);
    await write(index, chunk);
    await faults.hit('snapshot.commit.chunk_put');
  };
  try {
    const assembler = new ChunkAssembler({
      before,
      changed: (index, chunk) => {
        unchanged.delete(index);
        return tasks.add(() => keep(index, chunk));
      },
    });
    await give(assembler);
    await assembler.finish();
    for (const index of file.isCopy ? [] : unchanged) {
      await tasks.add(async () => {
        await write(index, await before(index));
      });
    }
  } finally {
    await tasks.settled();
  }
  tasks.throwIfFailed();
  return describeBase(sizeBytes, digests);
}
