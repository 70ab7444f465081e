import type { MemoryDelta } from '../../contract.ts';
import type { MemoryBase } from '../bases/memory-base.ts';
import type { MemoryBases } from '../bases/memory-bases.ts';
import { DeltaReader } from '../delta/delta-reader.ts';

/**
 * A base and a delta to it as a base of its own.
 * @param path of the delta
 * @param how `expected` absent: this process has just written it; `pace` present: nobody waits for it, and this is waited for before each part
 */
export async function derivedBase(
  bases: MemoryBases,
  id: string,
  parent: MemoryBase,
  path: string,
  how: { readonly expected?: MemoryDelta; readonly pace?: () => Promise<void> } = {},
): Promise<MemoryBase> {
  const reader = await DeltaReader.open(path, `memory delta of snapshot ${id}`, parent.sizeBytes, how.expected);
  try {
    return await bases.derive(parent, reader.give, how.pace);
  } finally {
    await reader.close();
  }
}
