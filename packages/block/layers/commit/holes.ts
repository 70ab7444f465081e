import { INDEX_ALIGNMENT, MAX_SEGMENT_LENGTH } from '../../lsmt/format.ts';
import { type SegmentIndex, ZEROED } from '../../lsmt/segment-index.ts';
import { SECTOR_SIZE } from '../contract.ts';

export interface DataRange {
  readonly offset: number;
  readonly length: number;
}

/**
 * Bytes of the largest hole that has to be filled so that what is left has no more segments than allowed. Holes are what
 * reads as zeros: this is for layers with nothing below.
 */
export function holeToFill(index: SegmentIndex, most: number): number {
  const wanted = Math.floor(most / INDEX_ALIGNMENT) * INDEX_ALIGNMENT;
  let hole = 0;
  while (segmentsWith(index, hole) > wanted && hole < 2 ** 32) hole = hole === 0 ? 1 : hole * 2;
  return hole * SECTOR_SIZE;
}

/** Ranges with the holes between them filled that are not larger than that. */
export function* joined(ranges: Iterable<DataRange>, hole: number): Generator<DataRange> {
  let last: { offset: number; length: number } | undefined;
  for (const range of ranges) {
    if (last !== undefined && range.offset - last.offset - last.length <= hole) {
      last.length = range.offset + range.length - last.offset;
      continue;
    }
    if (last !== undefined) yield last;
    last = { ...range };
  }
  if (last !== undefined) yield last;
}

/** An upper bound: data that goes on is cut into the longest segments. */
function segmentsWith(index: SegmentIndex, hole: number): number {
  let segments = 0;
  let start = 0;
  let end = -1;
  for (let i = 0; i < index.count; i++) {
    if (((index.marks[i] as number) & ZEROED) !== 0) continue;
    const offset = index.offsets[i] as number;
    if (end < 0 || offset - end > hole) {
      segments += pieces(end - start);
      start = offset;
    }
    end = offset + (index.lengths[i] as number);
  }
  return segments + pieces(end - start);
}

/** The writer's map ends a stretch after every 8192 sectors, and neighbours are joined only below the longest segment. */
function pieces(sectors: number): number {
  return sectors <= 0 ? 0 : Math.ceil(sectors / Math.floor(MAX_SEGMENT_LENGTH / 2)) + 1;
}
