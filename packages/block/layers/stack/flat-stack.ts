import type { BlobSource } from '../../blob/contract.ts';
import { type SegmentIndex, ZEROED } from '../../lsmt/segment-index.ts';
import { SECTOR_SIZE } from '../contract.ts';

/** A run of bytes that one read of one blob brings. */
export type Run = (source: BlobSource, target: Uint8Array, offset: number) => void;

/** Layers merged to one index. The level of a segment is the number of its source. */
export class FlatStack {
  readonly index: SegmentIndex;
  readonly sources: readonly BlobSource[];

  constructor(index: SegmentIndex, sources: readonly BlobSource[]) {
    this.index = index;
    this.sources = sources;
  }

  /** Reads what is at hand. @returns false if something is not */
  readSync(target: Uint8Array, offset: number): boolean {
    const { index } = this;
    const end = (offset + target.length) / SECTOR_SIZE;
    let sector = offset / SECTOR_SIZE;
    let at = 0;
    for (let i = index.find(sector); sector < end; ) {
      const start = i < index.count ? (index.offsets[i] as number) : end;
      if (start > sector) {
        const stop = Math.min(start, end);
        target.fill(0, at, at + (stop - sector) * SECTOR_SIZE);
        at += (stop - sector) * SECTOR_SIZE;
        sector = stop;
        continue;
      }
      const mark = index.marks[i] as number;
      const place = (index.places[i] as number) + (sector - start);
      const stop = Math.min(this.#joinedEnd(i, end), end);
      const length = (stop - sector) * SECTOR_SIZE;
      if ((mark & ZEROED) !== 0) target.fill(0, at, at + length);
      else if (!this.#source(mark).readSync(whole(target, at, length), place * SECTOR_SIZE)) return false;
      at += length;
      sector = stop;
      while (i < index.count && (index.offsets[i] as number) + (index.lengths[i] as number) <= sector) i++;
    }
    return true;
  }

  /** Fills with zeros what has no data, and reports the runs that have. */
  plan(target: Uint8Array, offset: number, run: Run): void {
    target.fill(0);
    this.index.forEach(offset / SECTOR_SIZE, target.length / SECTOR_SIZE, (sector, count, place, zeroed, level) => {
      const at = sector * SECTOR_SIZE - offset;
      if (!zeroed) run(this.#source(level), target.subarray(at, at + count * SECTOR_SIZE), place * SECTOR_SIZE);
    });
  }

  /** End of what goes on from segment `i` without a gap, on the disk and in the blob. */
  #joinedEnd(i: number, limit: number): number {
    const { offsets, lengths, places, marks } = this.index;
    let end = (offsets[i] as number) + (lengths[i] as number);
    const mark = marks[i] as number;
    const step = (mark & ZEROED) === 0 ? 1 : 0;
    while (end < limit && i + 1 < this.index.count) {
      const follows =
        offsets[i + 1] === end &&
        marks[i + 1] === mark &&
        (step === 0 || places[i + 1] === (places[i] as number) + (lengths[i] as number));
      if (!follows) break;
      i++;
      end += lengths[i] as number;
    }
    return end;
  }

  #source(mark: number): BlobSource {
    const source = this.sources[mark & 0xff];
    if (source === undefined) throw new RangeError('a segment of a layer that the stack does not have');
    return source;
  }
}

function whole(target: Uint8Array, at: number, length: number): Uint8Array {
  return length === target.length ? target : target.subarray(at, at + length);
}
