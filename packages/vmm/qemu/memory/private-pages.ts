import { readSync } from 'node:fs';
import { PAGE_SIZE } from '../../contract/micro-vm.ts';

/** Pages `first` to `end`, the latter excluded, counted from the address that was looked at. */
export interface PageRun {
  readonly first: number;
  readonly end: number;
}

const ENTRY_SIZE = 8;
/**
 * By the three highest bits of an entry (present, swapped, of a file; see the kernel's admin-guide/mm/pagemap) whether the
 * page is private: swapped, or present and of no file.
 */
const IS_PRIVATE = [0, 0, 1, 1, 1, 0, 1, 1] as const;
/** Of one call: a buffer of many pages that nobody has touched yet costs more than the calls that it saves. */
const CHUNK_ENTRIES = 8 * 1024;

/**
 * The pages of a private mapping that were written since: those that are in memory and not of a file (any more), and those
 * that are in swap. Of anonymous memory more are told: what was only read, and all of a huge page. Only a process with
 * CAP_SYS_ADMIN may ask of another one. In ascending order, of 32 MiB of memory at a time, for each of which the page map is
 * read synchronously.
 * @param pagemap descriptor of /proc/PID/pagemap
 */
export function* privatePages(pagemap: number, start: number, end: number): Generator<PageRun[]> {
  const total = (end - start) / PAGE_SIZE;
  const buffer = Buffer.alloc(Math.min(total, CHUNK_ENTRIES) * ENTRY_SIZE);
  let runs: PageRun[] = [];
  for (let done = 0; done < total; ) {
    const wanted = Math.min(total - done, CHUNK_ENTRIES) * ENTRY_SIZE;
    const bytesRead = readSync(pagemap, buffer, 0, wanted, (start / PAGE_SIZE + done) * ENTRY_SIZE);
    const entries = Math.floor(bytesRead / ENTRY_SIZE);
    if (entries === 0) throw new Error(`the page map ends at page ${done} of ${total}`);
    addRuns(runs, buffer.subarray(0, entries * ENTRY_SIZE), done);
    done += entries;
    // The last one may go on.
    const last = runs.at(-1);
    const open = done < total && last?.end === done ? runs.pop() : undefined;
    yield runs;
    runs = open === undefined ? [] : [open];
  }
  if (runs.length > 0) yield runs;
}

/** Appends the runs that the entries of pages from `base` on make; one that goes on from the last run is joined. */
export function addRuns(runs: PageRun[], entries: Uint8Array, base: number): void {
  const words = new Uint32Array(entries.buffer, entries.byteOffset, entries.length / 4);
  const count = words.length / 2;
  // Entries are little-endian, as the hosts that VMs run on are.
  const isPrivate = (index: number) => IS_PRIVATE[(words[index * 2 + 1] as number) >>> 29] === 1;
  for (let index = 0; index < count; ) {
    if (!isPrivate(index)) {
      index++;
      continue;
    }
    const first = base + index;
    while (index < count && isPrivate(index)) index++;
    const last = runs.at(-1);
    if (last?.end === first) runs[runs.length - 1] = { first: last.first, end: base + index };
    else runs.push({ first, end: base + index });
  }
}
