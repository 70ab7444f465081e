import { stat } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { SnapshotSubject } from '../../contract.ts';
import { describeBase, type MemoryBase } from '../bases/memory-base.ts';
import type { MemoryBases } from '../bases/memory-bases.ts';

/** Whether a file reads as zeros: as large as it must be, and nothing but a hole. */
export async function isHole(path: string, sizeBytes: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() === true && found.size === sizeBytes && found.blocks === 0;
}

/**
 * What a VM's memory is mapped from, as a base of the repository.
 * @throws AenvError `capture_failed`, `snapshot_corrupt`
 */
export async function parentBase(
  bases: MemoryBases,
  { memoryBase, memoryMb }: SnapshotSubject,
  isZeroFile: typeof isHole,
): Promise<MemoryBase> {
  const sizeBytes = memoryMb * 2 ** 20;
  const digest = bases.digestOf(memoryBase);
  if (digest === undefined) {
    if (await isZeroFile(memoryBase, sizeBytes)) return describeBase(sizeBytes, new Map())[0];
    throw new AenvError('capture_failed', `${memoryBase} is neither a memory base of this host nor a file of zeros`);
  }
  const base = await bases.load(digest);
  if (base.sizeBytes === sizeBytes) return base;
  throw new AenvError('capture_failed', `memory base ${digest} has ${base.sizeBytes} bytes, not ${memoryMb} MiB`);
}
