import type { FileHandle } from 'node:fs/promises';
import { PAGE_SIZE } from '../../contract/micro-vm.ts';

/** Pages `first` to `end`, the latter excluded, counted from the address that was looked at. */
export interface PageRun {
  readonly first: number;
  readonly end: number;
}

const ENTRY_SIZE = 8;
/** of the highest byte of an entry, see the kernel's admin-guide/mm/pagemap */
const [PRESENT, SWAPPED, FILE] = [0x80, 0x40, 0x20];
const CHUNK_ENTRIES = 128 * 1024;

/**
 * The pages of a private mapping that were written since: those that are in memory and not of a file (any more), and those
 * that are in swap. Of anonymous memory more are told: what was only read, and all of a huge page. Only a process with
 * CAP_SYS_ADMIN may ask of another one.
 * @param pagemap /proc/PID/pagemap, open for reading
 */
export async function privatePages(pagemap: FileHandle, start: number, end: number): Promise<PageRun[]> {
  const runs: PageRun[] = [];
  const total = (end - start) / PAGE_SIZE;
  const buffer = Buffer.alloc(Math.min(total, CHUNK_ENTRIES) * ENTRY_SIZE);
  for (let done = 0; done < total; ) {
    const wanted = Math.min(total - done, CHUNK_ENTRIES) * ENTRY_SIZE;
    const position = (start / PAGE_SIZE + done) * ENTRY_SIZE;
    const { bytesRead } = await pagemap.read(buffer, 0, wanted, position);
    const entries = Math.floor(bytesRead / ENTRY_SIZE);
    if (entries === 0) throw new Error(`the page map ends at page ${done} of ${total}`);
    addRuns(runs, buffer.subarray(0, entries * ENTRY_SIZE), done);
    done += entries;
  }
  return runs;
}

/** Appends the runs that the entries of pages from `base` on make; one that goes on from the last run is joined. */
export function addRuns(runs: PageRun[], entries: Uint8Array, base: number): void {
  const count = entries.length / ENTRY_SIZE;
  let first = -1;
  const add = (end: number) => {
    const last = runs.at(-1);
    if (last?.end === base + first) runs[runs.length - 1] = { first: last.first, end: base + end };
    else runs.push({ first: base + first, end: base + end });
    first = -1;
  };
  for (let index = 0; index < count; index++) {
    const flags = entries[index * ENTRY_SIZE + 7] ?? 0;
    const isPrivate = (flags & SWAPPED) !== 0 || ((flags & PRESENT) !== 0 && (flags & FILE) === 0);
    if (isPrivate && first < 0) first = index;
    else if (!isPrivate && first >= 0) add(index);
  }
  if (first >= 0) add(count);
}
