import { SEGMENT_SIZE } from './format.ts';

/**
 * One entry of an index on disk, two words of 64 bits:
 *
 *     offset 0..49, length 50..63 | moffset 0..54, zeroed 55, tag 56..63
 *
 * It is taken apart in 32-bit halves, since big integers are too slow for a million of entries. A place (`moffset`) beyond
 * 2^53 loses its last bits in `place`; no file is as large, so whoever checks it against the size refuses it all the same.
 */
export interface Segment {
  /** sector of the disk */
  offset: number;
  /** sectors */
  length: number;
  /** sector of the blob */
  place: number;
  zeroed: boolean;
  tag: number;
}

const TWO_32 = 2 ** 32;
const PADDING_LOW = 0xffff_ffff;
const PADDING_HIGH = 0x0003_ffff;

export function writeSegment(
  view: DataView,
  at: number,
  offset: number,
  length: number,
  place: number,
  zeroed: boolean,
  tag = 0,
): void {
  view.setUint32(at, offset % TWO_32, true);
  view.setUint32(at + 4, (Math.floor(offset / TWO_32) | (length << 18)) >>> 0, true);
  view.setUint32(at + 8, place % TWO_32, true);
  view.setUint32(at + 12, (Math.floor(place / TWO_32) | (zeroed ? 0x80_0000 : 0) | (tag << 24)) >>> 0, true);
}

/** Fills `into`, so that a loop over an index makes no garbage. */
export function readSegment(view: DataView, at: number, into: Segment): void {
  const low = view.getUint32(at + 4, true);
  const high = view.getUint32(at + 12, true);
  into.offset = (low & 0x3_ffff) * TWO_32 + view.getUint32(at, true);
  into.length = low >>> 18;
  into.place = (high & 0x7f_ffff) * TWO_32 + view.getUint32(at + 8, true);
  into.zeroed = (high & 0x80_0000) !== 0;
  into.tag = high >>> 24;
}

/** An entry that says nothing: readers drop it, wherever it stands. */
export function writePadding(view: DataView, at: number): void {
  view.setUint32(at, PADDING_LOW, true);
  view.setUint32(at + 4, PADDING_HIGH, true);
  view.setUint32(at + 8, 0, true);
  view.setUint32(at + 12, 0, true);
}

export function emptySegment(): Segment {
  return { offset: 0, length: 0, place: 0, zeroed: false, tag: 0 };
}

/** @returns how many whole entries the bytes have */
export function entryCount(byteLength: number): number {
  return Math.floor(byteLength / SEGMENT_SIZE);
}
