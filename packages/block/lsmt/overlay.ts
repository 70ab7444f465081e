import { type SegmentIndex, SegmentIndexBuilder, ZEROED } from './segment-index.ts';
import { atOnce, SLICE, type Sliced } from './slices.ts';

/**
 * Merges layers to one index, top layer first; the levels of the segments are those that the indexes have. Zeroed
 * segments hide what is below and stay.
 */
export function* merge(topFirst: readonly SegmentIndex[]): Sliced<SegmentIndex> {
  // In pairs, as laying one index over another is associative: N layers cost log N passes.
  let level = [...topFirst];
  while (level.length > 1) {
    const next: SegmentIndex[] = [];
    for (let i = 0; i < level.length; i += 2) {
      const [upper, lower] = [level[i], level[i + 1]];
      if (upper !== undefined) next.push(lower === undefined ? upper : yield* overlay(upper, lower));
    }
    level = next;
  }
  return level[0] ?? new SegmentIndexBuilder(0).finish();
}

export function mergeAtOnce(topFirst: readonly SegmentIndex[]): SegmentIndex {
  return atOnce(merge(topFirst));
}

/**
 * Lays one index over another: what the upper one has hides the same part of the lower one.
 * @param raise added to the levels of the upper one
 */
export function* overlay(upper: SegmentIndex, lower: SegmentIndex, raise = 0): Sliced<SegmentIndex> {
  const out = new SegmentIndexBuilder(Math.max(16, upper.count + lower.count));
  /** first sector of the lower index that is not yet hidden or copied */
  let from = 0;
  let j = 0;
  let work = 0;
  for (let i = 0; i <= upper.count; i++) {
    const begin = i < upper.count ? (upper.offsets[i] as number) : Number.POSITIVE_INFINITY;
    while (j < lower.count) {
      if (++work % SLICE === 0) yield;
      const offset = lower.offsets[j] as number;
      const end = offset + (lower.lengths[j] as number);
      const start = Math.max(offset, from);
      const stop = Math.min(end, begin);
      if (start < stop) {
        const mark = lower.marks[j] as number;
        const step = (mark & ZEROED) === 0 ? start - offset : 0;
        out.append(start, stop - start, (lower.places[j] as number) + step, mark);
      }
      if (end > begin) break;
      j++;
    }
    if (i === upper.count) break;
    if (++work % SLICE === 0) yield;
    const length = upper.lengths[i] as number;
    out.append(begin, length, upper.places[i] as number, (upper.marks[i] as number) + raise);
    from = begin + length;
  }
  return out.finish();
}
