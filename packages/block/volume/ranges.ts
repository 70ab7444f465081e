/** A range of a disk, in bytes. */
export interface Range {
  readonly offset: number;
  readonly length: number;
}

/** From the start of the first to the end of the last of ranges that are in order; there is at least one. */
export function hullOf(ranges: readonly Range[]): Range {
  const [first, last] = [ranges[0], ranges.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError('no range');
  return { offset: first.offset, length: last.offset + last.length - first.offset };
}

/**
 * Data ranges of a layer over others: its own parts that are data, and in the gaps between its parts what the others have.
 * @param parts what the layer knows, in order, inside `whole`
 */
export function* overlaid(
  whole: Range,
  parts: Iterable<Range & { readonly zeroed: boolean }>,
  below: (gap: Range) => Iterable<Range>,
): Generator<Range> {
  let at = whole.offset;
  for (const { offset, length, zeroed } of parts) {
    if (offset > at) yield* below({ offset: at, length: offset - at });
    if (!zeroed) yield { offset, length };
    at = offset + length;
  }
  const end = whole.offset + whole.length;
  if (end > at) yield* below({ offset: at, length: end - at });
}
