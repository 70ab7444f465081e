import { MAX_SEGMENT_LENGTH } from './format.ts';

/** Bit of `marks` that says "reads as zeros"; the lower eight bits are the level. */
export const ZEROED = 0x100;

/**
 * Segments of a layer, or of several layers merged, sorted by offset and without overlaps. Twelve bytes a segment; at
 * 285 ns for a look-up among a million there is no need for more than a binary search.
 */
export class SegmentIndex {
  readonly count: number;
  readonly offsets: Uint32Array;
  readonly lengths: Uint16Array;
  /** sectors of the blob */
  readonly places: Uint32Array;
  /** level of the layer, and `ZEROED` */
  readonly marks: Uint16Array;

  constructor(count: number, offsets: Uint32Array, lengths: Uint16Array, places: Uint32Array, marks: Uint16Array) {
    this.count = count;
    this.offsets = offsets;
    this.lengths = lengths;
    this.places = places;
    this.marks = marks;
  }

  /** @returns number of the first segment that ends behind `sector`; `count` if there is none */
  find(sector: number): number {
    const { offsets, lengths } = this;
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((offsets[middle] as number) + (lengths[middle] as number) > sector) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Calls back for each segment, clipped to the range, in order. */
  forEach(
    sector: number,
    count: number,
    stretch: (sector: number, count: number, place: number, zeroed: boolean, level: number) => void,
  ): void {
    const end = sector + count;
    for (let i = this.find(sector); i < this.count; i++) {
      const offset = this.offsets[i] as number;
      if (offset >= end) return;
      const start = Math.max(offset, sector);
      const stop = Math.min(offset + (this.lengths[i] as number), end);
      const mark = this.marks[i] as number;
      stretch(start, stop - start, (this.places[i] as number) + (start - offset), (mark & ZEROED) !== 0, mark & 0xff);
    }
  }

  /** The same segments as those of another level. */
  atLevel(level: number): SegmentIndex {
    const marks = this.marks.map((mark) => (mark & ZEROED) | level);
    return new SegmentIndex(this.count, this.offsets, this.lengths, this.places, marks);
  }

  /** Bytes of memory. */
  get footprint(): number {
    return this.offsets.byteLength + this.lengths.byteLength + this.places.byteLength + this.marks.byteLength;
  }
}

/** Collects segments in ascending order. */
export class SegmentIndexBuilder {
  #count = 0;
  #offsets: Uint32Array;
  #lengths: Uint16Array;
  #places: Uint32Array;
  #marks: Uint16Array;

  constructor(capacity = 64) {
    this.#offsets = new Uint32Array(capacity);
    this.#lengths = new Uint16Array(capacity);
    this.#places = new Uint32Array(capacity);
    this.#marks = new Uint16Array(capacity);
  }

  get count(): number {
    return this.#count;
  }

  append(offset: number, length: number, place: number, mark: number): void {
    const at = this.#count++;
    if (at === this.#offsets.length) this.#grow();
    this.#offsets[at] = offset;
    this.#lengths[at] = length;
    this.#places[at] = place;
    this.#marks[at] = mark;
  }

  /**
   * Appends a range of any length, joined to the last segment where disk and blob go on without a gap. Joined segments
   * are shorter than the longest possible one, as the reference does it.
   */
  appendJoined(offset: number, length: number, place: number, mark: number): void {
    const last = this.#count - 1;
    const step = (mark & ZEROED) === 0 ? 1 : 0;
    if (last >= 0 && this.#marks[last] === mark) {
      const lastLength = this.#lengths[last] as number;
      if (
        (this.#offsets[last] as number) + lastLength === offset &&
        (this.#places[last] as number) + lastLength * step === place &&
        lastLength + length < MAX_SEGMENT_LENGTH
      ) {
        this.#lengths[last] = lastLength + length;
        return;
      }
    }
    while (length > MAX_SEGMENT_LENGTH) {
      this.append(offset, MAX_SEGMENT_LENGTH, place, mark);
      offset += MAX_SEGMENT_LENGTH;
      place += MAX_SEGMENT_LENGTH * step;
      length -= MAX_SEGMENT_LENGTH;
    }
    this.append(offset, length, place, mark);
  }

  finish(): SegmentIndex {
    const n = this.#count;
    return new SegmentIndex(
      n,
      this.#offsets.slice(0, n),
      this.#lengths.slice(0, n),
      this.#places.slice(0, n),
      this.#marks.slice(0, n),
    );
  }

  #grow(): void {
    const capacity = this.#offsets.length * 2;
    this.#offsets = enlarged(this.#offsets, new Uint32Array(capacity));
    this.#lengths = enlarged(this.#lengths, new Uint16Array(capacity));
    this.#places = enlarged(this.#places, new Uint32Array(capacity));
    this.#marks = enlarged(this.#marks, new Uint16Array(capacity));
  }
}

function enlarged<T extends Uint32Array | Uint16Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
}
