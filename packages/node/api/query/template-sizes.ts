import type { NewTemplate } from '../../templates/pull/contract.ts';

/** Sizes as clients may send them. */
export interface AskedSizes {
  readonly cpuCount?: number | null | undefined;
  readonly memoryMB?: number | null | undefined;
  readonly diskSizeMB?: number | null | undefined;
}

const DEFAULT_CPUS = 1;
const DEFAULT_MEMORY_MB = 512;

/** The size of sandboxes, with what counts when the client says nothing. */
export function sizesOf({ cpuCount, memoryMB, diskSizeMB }: AskedSizes): Omit<NewTemplate, 'alias'> {
  return {
    cpuCount: cpuCount ?? DEFAULT_CPUS,
    memoryMb: memoryMB ?? DEFAULT_MEMORY_MB,
    diskSizeMb: diskSizeMB ?? undefined,
  };
}
