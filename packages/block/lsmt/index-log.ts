import { FIRST_DATA_SECTOR, SEGMENT_SIZE } from './format.ts';
import { isInside } from './sealed-index.ts';
import { MAX_DATA_SECTORS, type SectorMap } from './sector-map.ts';
import { emptySegment, entryCount, readSegment } from './segment.ts';

/** What a replay found besides good entries. */
export interface Replay {
  readonly applied: number;
  /** positions of entries that point at data that is not there, in bytes from the start of the log */
  readonly invalid: readonly number[];
}

const PADDING_OFFSET = 2 ** 50 - 1;

/**
 * Replays the log of a writable layer into a map, in the order of the log. Padding and entries of length 0 (a torn tail)
 * say nothing; entries whose data is not there, or that lie outside of the disk, are left out and reported.
 * @param bytes whole entries; a torn one at the end is left out
 * @param sectors size of the disk
 * @param dataEnd first sector behind the data file
 */
export function replayLog(bytes: Uint8Array, map: SectorMap, sectors: number, dataEnd: number): Replay {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const total = entryCount(bytes.byteLength);
  const segment = emptySegment();
  const end = Math.min(dataEnd, MAX_DATA_SECTORS);
  const invalid: number[] = [];
  let applied = 0;
  for (let i = 0; i < total; i++) {
    readSegment(view, i * SEGMENT_SIZE, segment);
    const { offset, length, place, zeroed } = segment;
    if (length === 0 || offset === PADDING_OFFSET) continue;
    // The end of the data does not matter where zeros are said: a tail of the file may be lost, the zeros are not.
    const known = zeroed ? place >= FIRST_DATA_SECTOR : isInside(place, length, false, end);
    if (offset + length > sectors || !known) {
      invalid.push(i * SEGMENT_SIZE);
      continue;
    }
    if (zeroed) map.setZero(offset, length);
    else map.setData(offset, length, place);
    applied++;
  }
  return { applied, invalid };
}
