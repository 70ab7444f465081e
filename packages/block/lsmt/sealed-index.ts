import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { FIRST_DATA_SECTOR, MAX_SECTORS, SEGMENT_SIZE } from './format.ts';
import { emptySegment, entryCount, readSegment, writePadding, writeSegment } from './segment.ts';
import { type SegmentIndex, SegmentIndexBuilder, ZEROED } from './segment-index.ts';
import { SLICE, type Sliced } from './slices.ts';

const PADDING_OFFSET = 2 ** 50 - 1;

/**
 * Reads the index of a sealed or committed layer. Whoever calls has bounded its size.
 * @param dataEnd first sector behind the data: that of the index
 * @throws AenvError `layer_corrupt` if entries overlap, are not sorted or point outside of the data
 */
export function* parseSealedIndex(bytes: Uint8Array, dataEnd: number): Sliced<SegmentIndex> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const total = entryCount(bytes.byteLength);
  const out = new SegmentIndexBuilder(Math.max(1, total));
  const segment = emptySegment();
  let end = 0;
  for (let i = 0; i < total; i++) {
    if (i % SLICE === SLICE - 1) yield;
    readSegment(view, i * SEGMENT_SIZE, segment);
    const { offset, length, place, zeroed } = segment;
    // All bits of the offset set is padding; some writers leave other empty entries.
    if (offset === PADDING_OFFSET || length === 0) continue;
    if (offset < end) throw corrupt(i, 'overlaps the one before it, or is not in order');
    end = offset + length;
    if (end > MAX_SECTORS) throw corrupt(i, 'lies beyond 2 TiB');
    if (!isInside(place, length, zeroed, dataEnd)) throw corrupt(i, 'points outside of the data');
    out.append(offset, length, place, zeroed ? ZEROED : 0);
  }
  return out.finish();
}

/** Whether a segment's place is inside the data, as readers of the format demand it also of zeroed ones. */
export function isInside(place: number, length: number, zeroed: boolean, dataEnd: number): boolean {
  if (place < FIRST_DATA_SECTOR) return false;
  return zeroed ? place <= dataEnd : place < dataEnd && place + length <= dataEnd;
}

/**
 * @param padTo the number of entries is filled up to a multiple of this with padding entries
 * @returns the bytes of the index on disk
 */
export function* serialiseIndex(index: SegmentIndex, padTo = 1): Sliced<Buffer> {
  const total = Math.ceil(index.count / padTo) * padTo;
  const bytes = Buffer.allocUnsafe(total * SEGMENT_SIZE);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < index.count; i++) {
    if (i % SLICE === SLICE - 1) yield;
    writeSegment(
      view,
      i * SEGMENT_SIZE,
      index.offsets[i] as number,
      index.lengths[i] as number,
      index.places[i] as number,
      ((index.marks[i] as number) & ZEROED) !== 0,
    );
  }
  for (let i = index.count; i < total; i++) writePadding(view, i * SEGMENT_SIZE);
  return bytes;
}

function corrupt(entry: number, problem: string): AenvError {
  return new AenvError('layer_corrupt', `the layer's index is damaged: entry ${entry} ${problem}`);
}
