import { readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type MemorySink, PAGE_SIZE } from '../../contract/micro-vm.ts';
import type { Mapping } from './mapping.ts';
import { privatePages } from './private-pages.ts';
import { Turns } from './turns.ts';

const CHUNK = 1024 * 1024;
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
  await using pagemap = await open(`/proc/${pid}/pagemap`);
  await using memory = await open(`/proc/${pid}/mem`);
  const buffer = Buffer.allocUnsafe(CHUNK);
  const from: Source = { memory: memory.fd, buffer, turns: new Turns() };
  for (const mapping of mappings) {
    for (const run of await privatePages(pagemap, mapping.start, mapping.end)) {
      await readRun(from, mapping, run.first * PAGE_SIZE, run.end * PAGE_SIZE, sink);
    }
  }
}

interface Source {
  /** /proc/PID/mem, open for reading */
  readonly memory: number;
  readonly buffer: Buffer;
  readonly turns: Turns;
}

async function readRun(source: Source, mapping: Mapping, from: number, to: number, sink: MemorySink): Promise<void> {
  const { memory, buffer, turns } = source;
  for (let at = from; at < to; ) {
    const bytesRead = readSync(memory, buffer, 0, Math.min(CHUNK, to - at), mapping.start + at);
    const whole = bytesRead - (bytesRead % PAGE_SIZE);
    if (whole === 0) throw new Error(`guest memory cannot be read at ${at}`);
    await splitZeros(buffer.subarray(0, whole), mapping.fileOffset + at, sink);
    at += whole;
    const turn = turns.copied(whole);
    if (turn !== undefined) await turn;
  }
}

/** Tells runs of pages that are all zero from those that are not. */
export async function splitZeros(bytes: Buffer, offset: number, sink: MemorySink): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const zero = isZero(bytes, from);
    let to = from + PAGE_SIZE;
    while (to < bytes.length && isZero(bytes, to) === zero) to += PAGE_SIZE;
    const given = zero ? sink.zero(offset + from, to - from) : sink.data(offset + from, bytes.subarray(from, to));
    if (given !== undefined) await given;
    from = to;
  }
}

function isZero(bytes: Buffer, page: number): boolean {
  // The first word decides nearly always.
  return bytes.readInt32LE(page) === 0 && bytes.compare(ZERO_PAGE, 0, PAGE_SIZE, page, page + PAGE_SIZE) === 0;
}
