import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ByteReader } from './byte-reader.ts';
import { parseNumber } from './numbers.ts';
import type { PaxRecords } from './pax.ts';

/** A run of bytes of a sparse member that are in the archive; between the runs are holes. */
export interface Segment {
  readonly offset: number;
  readonly length: number;
}

export interface SparseMap {
  /** of the file with its holes */
  readonly size: number;
  readonly segments: readonly Segment[];
  /** bytes of the archive that held the map itself, in front of the data */
  readonly mapBytes: number;
}

const MAX_SEGMENTS = 200_000;
const BLOCK = 512;
const SLOT = 24;

/**
 * GNU tar's old form (type `S`): four segments in the header, then blocks of 21 for as long as each says that one more
 * follows (GNU tar manual, "Old GNU Format").
 * @throws AenvError `image_invalid`
 */
export async function readOldSparse(header: Buffer, input: ByteReader): Promise<SparseMap> {
  const size = parseNumber(header.subarray(483, 495));
  if (size === undefined) throw invalid();
  const segments: Segment[] = [];
  addSlots(segments, header, 386, 4);
  let more = header[482] === 1;
  while (more) {
    const block = await input.upTo(BLOCK);
    if (block.length < BLOCK || segments.length > MAX_SEGMENTS) throw invalid();
    addSlots(segments, block, 0, 21);
    more = block[504] === 1;
  }
  return checked({ size, segments, mapBytes: 0 });
}

function addSlots(segments: Segment[], block: Buffer, start: number, count: number): void {
  for (let at = start; at < start + count * SLOT; at += SLOT) {
    // An empty slot is the last one.
    if (block[at] === 0) return;
    const offset = parseNumber(block.subarray(at, at + 12));
    const length = parseNumber(block.subarray(at + 12, at + SLOT));
    if (offset === undefined || length === undefined) throw invalid();
    segments.push({ offset, length });
  }
}

/** What the PAX records say of a sparse member, in one of GNU tar's formats 0.0, 0.1 and 1.0; undefined when it is none. */
export async function readPaxSparse(records: PaxRecords, input: ByteReader): Promise<SparseMap | undefined> {
  if (![...records.keys()].some((key) => key.startsWith('GNU.sparse.'))) return undefined;
  const text = (key: string) => records.get(`GNU.sparse.${key}`)?.toString('latin1');
  if (text('major') === '1' && text('minor') === '0') return readMapBeforeData(numberOf(text('realsize')), input);
  if (text('major') !== undefined && text('major') !== '0') throw invalid();
  const list = text('map') ?? '';
  const numbers = list === '' ? [] : list.split(',').map(numberOf);
  return checked({ size: numberOf(text('size') ?? text('realsize')), segments: pairs(numbers), mapBytes: 0 });
}

/** Format 1.0: decimal lines in front of the data, the first one the number of segments, filled up to a block. */
async function readMapBeforeData(size: number, input: ByteReader): Promise<SparseMap> {
  let text = '';
  let mapBytes = 0;
  const numbers: number[] = [];
  let expected = 1;
  while (numbers.length < expected) {
    const block = await input.upTo(BLOCK);
    if (block.length < BLOCK) throw invalid();
    mapBytes += BLOCK;
    const lines = (text + block.toString('latin1')).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      if (numbers.length === expected) break;
      numbers.push(numberOf(line));
      if (numbers.length === 1) expected = 1 + 2 * Math.min(numberOf(line), MAX_SEGMENTS + 1);
    }
    if (expected > 1 + 2 * MAX_SEGMENTS || text.length > BLOCK) throw invalid();
  }
  return checked({ size, segments: pairs(numbers.slice(1)), mapBytes });
}

function pairs(numbers: readonly number[]): Segment[] {
  if (numbers.length % 2 !== 0) throw invalid();
  const segments: Segment[] = [];
  for (let at = 0; at < numbers.length; at += 2) {
    segments.push({ offset: numbers[at] ?? 0, length: numbers[at + 1] ?? 0 });
  }
  return segments;
}

function numberOf(text: string | undefined): number {
  if (text === undefined || !/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text))) throw invalid();
  return Number(text);
}

/** Segments must be in order, apart from one another, and inside the file. */
function checked(map: SparseMap): SparseMap {
  let end = 0;
  for (const { offset, length } of map.segments) {
    if (offset < end || length < 0 || !Number.isSafeInteger(offset + length)) throw invalid();
    end = offset + length;
  }
  if (end > map.size || map.segments.length > MAX_SEGMENTS) throw invalid();
  return map;
}

function invalid(): AenvError {
  return new AenvError('image_invalid', 'tar archive: the map of a sparse member is damaged');
}
