import { EXTENT } from '../protocol/numbers.ts';
import type { Extent } from '../protocol/replies.ts';

interface Range {
  readonly offset: number;
  readonly length: number;
}

/**
 * Data and holes of `[offset, offset + length)`, one after the other without a gap; adjoining data is one extent.
 * @param ranges data, in order, as a volume tells it; may go beyond the range
 * @param most extents after which it stops, so that an answer is bounded; at least 1
 */
export function extentsOf(ranges: Iterable<Range>, offset: number, length: number, most: number): Extent[] {
  const end = offset + length;
  const extents: { length: number; readonly flags: number }[] = [];
  let at = offset;
  const add = (until: number, flags: number): boolean => {
    if (until <= at) return true;
    const last = extents.at(-1);
    if (last?.flags === flags) last.length += until - at;
    else if (extents.length === most) return false;
    else extents.push({ length: until - at, flags });
    at = until;
    return true;
  };
  for (const range of ranges) {
    const from = Math.min(Math.max(range.offset, at), end);
    if (!add(from, EXTENT.hole | EXTENT.zero)) return extents;
    if (!add(Math.min(range.offset + range.length, end), 0)) return extents;
    if (at === end) return extents;
  }
  add(end, EXTENT.hole | EXTENT.zero);
  return extents;
}

/**
 * How to answer a long read: its holes of at least `least` bytes apart from the rest, which is read.
 * @returns undefined when it has no such hole
 */
export function splitAtHoles(
  ranges: Iterable<Range>,
  offset: number,
  length: number,
  least: number,
): readonly (Range & { readonly hole: boolean })[] | undefined {
  const parts: { offset: number; length: number; hole: boolean }[] = [];
  let at = offset;
  for (const extent of extentsOf(ranges, offset, length, Number.POSITIVE_INFINITY)) {
    const hole = extent.flags !== 0 && extent.length >= least;
    const last = parts.at(-1);
    if (last !== undefined && !hole && !last.hole) last.length += extent.length;
    else parts.push({ offset: at, length: extent.length, hole });
    at += extent.length;
  }
  return parts.some((part) => part.hole) ? parts : undefined;
}
