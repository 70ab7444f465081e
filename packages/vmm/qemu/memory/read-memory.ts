import { type FileHandle, open } from 'node:fs/promises';
import { type MemorySink, PAGE_SIZE } from '../../contract/micro-vm.ts';
import { type Mapping, mappingsOf } from './mapping.ts';
import { privatePages } from './private-pages.ts';

const CHUNK = 1024 * 1024;
const ZERO_PAGE = Buffer.alloc(PAGE_SIZE);

/**
 * Gives the pages of a guest that differ from the file that its memory is a private mapping of. The guest must stand
 * still. What it costs follows the number of such pages.
 */
export async function readMemory(pid: number, base: string, size: number, sink: MemorySink): Promise<void> {
  const mappings = await mappingsOf(pid, base, size);
  await using pagemap = await open(`/proc/${pid}/pagemap`);
  await using memory = await open(`/proc/${pid}/mem`);
  const buffer = Buffer.allocUnsafe(CHUNK);
  for (const mapping of mappings) {
    for (const run of await privatePages(pagemap, mapping.start, mapping.end)) {
      await readRun(memory, mapping, run.first * PAGE_SIZE, run.end * PAGE_SIZE, buffer, sink);
    }
  }
}

async function readRun(
  memory: FileHandle,
  mapping: Mapping,
  from: number,
  to: number,
  buffer: Buffer,
  sink: MemorySink,
): Promise<void> {
  for (let at = from; at < to; ) {
    const { bytesRead } = await memory.read(buffer, 0, Math.min(CHUNK, to - at), mapping.start + at);
    const whole = bytesRead - (bytesRead % PAGE_SIZE);
    if (whole === 0) throw new Error(`guest memory cannot be read at ${at}`);
    await splitZeros(buffer.subarray(0, whole), mapping.fileOffset + at, sink);
    at += whole;
  }
}

/** Tells runs of pages that are all zero from those that are not. */
export async function splitZeros(bytes: Buffer, offset: number, sink: MemorySink): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const zero = isZero(bytes, from);
    let to = from + PAGE_SIZE;
    while (to < bytes.length && isZero(bytes, to) === zero) to += PAGE_SIZE;
    if (zero) await sink.zero(offset + from, to - from);
    else await sink.data(offset + from, bytes.subarray(from, to));
    from = to;
  }
}

function isZero(bytes: Buffer, page: number): boolean {
  // The first word decides nearly always.
  return bytes.readInt32LE(page) === 0 && bytes.compare(ZERO_PAGE, 0, PAGE_SIZE, page, page + PAGE_SIZE) === 0;
}
