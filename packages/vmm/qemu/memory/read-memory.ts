import { closeSync, openSync, readSync } from 'node:fs';
import { type MemorySink, PAGE_SIZE } from '../../contract/micro-vm.ts';
import type { Mapping } from './mapping.ts';
import { privatePages } from './private-pages.ts';
import { Turns } from './turns.ts';

/** A few pages that are used over and over: memory that was never touched costs more than to call more often. */
const CHUNK = 128 * 1024;
/** What a look at 32 MiB of memory takes, in bytes that could be copied instead. */
const LOOK = 1024 * 1024;
const ZERO_PAGE = Buffer.alloc(PAGE_SIZE);

/**
 * Gives the pages of a guest that differ from what its memory began as. The guest must stand still. What it costs follows
 * the number of such pages.
 *
 * They are read synchronously: they are in memory, mostly some pages here and some there, and each read that goes through
 * the pool of threads is queued behind whatever else this process has there.
 * @param mappings where the process has that memory, private to it
 */
export async function readMemory(pid: number, mappings: readonly Mapping[], sink: MemorySink): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(CHUNK);
  const turns = new Turns();
  let pagemap: number | undefined;
  let memory: number | undefined;
  try {
    pagemap = openSync(`/proc/${pid}/pagemap`, 'r');
    memory = openSync(`/proc/${pid}/mem`, 'r');
    for (const mapping of mappings) {
      for (const runs of privatePages(pagemap, mapping.start, mapping.end)) {
        const next = turns.copied(LOOK);
        if (next !== undefined) await next;
        for (const { first, end } of runs) {
          for (let page = first; page < end; ) {
            const length = readPages(memory, buffer, mapping.start, page, end);
            const given = giveSplit(buffer, 0, length, mapping.fileOffset + page * PAGE_SIZE, sink);
            if (given !== undefined) await given;
            page += length / PAGE_SIZE;
            const turn = turns.copied(length);
            if (turn !== undefined) await turn;
          }
        }
      }
    }
  } finally {
    if (memory !== undefined) closeSync(memory);
    if (pagemap !== undefined) closeSync(pagemap);
  }
}

/**
 * Bytes of the pages that `readMemory` would give. The guest may run.
 * @param mappings where the process has that memory, private to it
 */
export async function countPrivate(pid: number, mappings: readonly Mapping[]): Promise<number> {
  const pagemap = openSync(`/proc/${pid}/pagemap`, 'r');
  const turns = new Turns();
  try {
    let pages = 0;
    for (const mapping of mappings) {
      for (const runs of privatePages(pagemap, mapping.start, mapping.end)) {
        const turn = turns.copied(LOOK);
        if (turn !== undefined) await turn;
        for (const { first, end } of runs) pages += end - first;
      }
    }
    return pages * PAGE_SIZE;
  } finally {
    closeSync(pagemap);
  }
}

/** @returns bytes of whole pages, one at least, as many as came in one go */
function readPages(memory: number, buffer: Buffer, start: number, page: number, end: number): number {
  const wanted = Math.min(CHUNK, (end - page) * PAGE_SIZE);
  const bytesRead = readSync(memory, buffer, 0, wanted, start + page * PAGE_SIZE);
  const whole = bytesRead - (bytesRead % PAGE_SIZE);
  if (whole === 0) throw new Error(`guest memory cannot be read at ${page * PAGE_SIZE}`);
  return whole;
}

/**
 * Gives bytes `begin` to `end`, runs of pages that are all zero apart from those that are not. There are thousands of runs,
 * so it makes no objects that it need not.
 * @param offset of the first byte of `bytes` in the guest's memory
 * @returns what is to be waited for before `bytes` change and more is given, if the sink is busy
 */
export function giveSplit(
  bytes: Buffer,
  begin: number,
  end: number,
  offset: number,
  sink: MemorySink,
): undefined | Promise<void> {
  for (let from = begin; from < end; ) {
    const zero = isZero(bytes, from);
    let to = from + PAGE_SIZE;
    while (to < end && isZero(bytes, to) === zero) to += PAGE_SIZE;
    const given = zero ? sink.zero(offset + from, to - from) : sink.data(offset + from, bytes.subarray(from, to));
    if (given !== undefined) return given.then(() => giveSplit(bytes, to, end, offset, sink));
    from = to;
  }
  return undefined;
}

function isZero(bytes: Buffer, page: number): boolean {
  // The first word decides nearly always.
  return bytes.readInt32LE(page) === 0 && bytes.compare(ZERO_PAGE, 0, PAGE_SIZE, page, page + PAGE_SIZE) === 0;
}
