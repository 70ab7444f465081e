import { FIRST_DATA_SECTOR } from './format.ts';
import { GRANULE, GranuleSlots } from './granule-slots.ts';
import { type SegmentIndex, SegmentIndexBuilder, ZEROED } from './segment-index.ts';
import { SLICE, type Sliced } from './slices.ts';

/** Granules of a leaf: 4 MiB of the disk in 4 KiB of memory. */
const LEAF = 1024;
const LEAF_SECTORS = GRANULE * LEAF;

/** Values of a granule; any other is the place of its first sector in the data file, the other seven follow there. */
const ABSENT = 0;
const ZERO = 1;
/** From here on: the granule's sectors are not in one piece, their places are in the slot of this number. */
const MIXED = 2 ** 31;
/** Sectors of the largest data file: 1 TiB. */
export const MAX_DATA_SECTORS = MIXED;

/** Shared by all leaves that are zeroed as a whole, as when a file system is made; copied before it is changed. */
const ZERO_LEAF = new Uint32Array(LEAF).fill(ZERO);

/** One stretch that a map knows: sectors, place of the first one in the data file (0 if zeroed). */
export type Stretch = (sector: number, count: number, place: number, zeroed: boolean) => void;

/**
 * Where the newest version of each sector of a writable layer is. Two levels, so that a look-up costs some 30 ns;
 * granules of 4 KiB, and exact sectors where a granule was not written in one piece.
 */
export class SectorMap {
  readonly #leaves: (Uint32Array | undefined)[];
  readonly #slots = new GranuleSlots();
  #live = 0;

  /** @param sectors size of the disk */
  constructor(sectors: number) {
    this.#leaves = new Array(Math.ceil(sectors / LEAF_SECTORS)).fill(undefined);
  }

  /** Sectors of the data file that the map points to. */
  get liveSectors(): number {
    return this.#live;
  }

  setData(sector: number, count: number, place: number): void {
    this.#set(sector, count, place);
    this.#live += count;
  }

  setZero(sector: number, count: number): void {
    this.#set(sector, count, ZERO);
  }

  /** Calls back for each stretch inside the range, in order, as long as disk and data file go on without a gap. */
  forEach(sector: number, count: number, stretch: Stretch): void {
    const end = sector + count;
    /** the stretch that is being collected */
    let begin = -1;
    let length = 0;
    let first = 0;
    while (sector < end) {
      const leafNumber = Math.floor(sector / LEAF_SECTORS);
      const leaf = this.#leaves[leafNumber];
      const leafEnd = Math.min(end, (leafNumber + 1) * LEAF_SECTORS);
      if (leaf === undefined) {
        sector = leafEnd;
        continue;
      }
      while (sector < leafEnd) {
        const granule = Math.floor(sector / GRANULE);
        const within = sector % GRANULE;
        const value = leaf[granule % LEAF] as number;
        const isMixed = value >= MIXED;
        const parts = isMixed ? Math.min(GRANULE - within, leafEnd - sector) : 1;
        for (let i = 0; i < parts; i++) {
          const at = isMixed ? this.#slots.get(value - MIXED, within + i) : placeAt(value, within);
          const step = isMixed ? 1 : Math.min(GRANULE - within, leafEnd - sector);
          if (at !== ABSENT) {
            const goesOn =
              begin + length === sector && (at === ZERO ? first === ZERO : first !== ZERO && first + length === at);
            if (begin >= 0 && goesOn) length += step;
            else {
              if (begin >= 0) stretch(begin, length, first === ZERO ? 0 : first, first === ZERO);
              begin = sector;
              length = step;
              first = at;
            }
          }
          sector += step;
        }
      }
    }
    if (begin >= 0) stretch(begin, length, first === ZERO ? 0 : first, first === ZERO);
  }

  /**
   * The map as a sorted index.
   * @param zeroPlace place of zeroed segments: readers want one inside the data or at its end
   */
  *toIndex(zeroPlace: number): Sliced<SegmentIndex> {
    const out = new SegmentIndexBuilder(1024);
    let done = 0;
    for (let leaf = 0; leaf < this.#leaves.length; leaf++) {
      if (this.#leaves[leaf] === undefined) continue;
      this.forEach(leaf * LEAF_SECTORS, LEAF_SECTORS, (sector, count, place, zeroed) =>
        out.appendJoined(sector, count, zeroed ? zeroPlace : place, zeroed ? ZEROED : 0),
      );
      if (out.count - done > SLICE) {
        done = out.count;
        yield;
      }
    }
    return out.finish();
  }

  #set(sector: number, count: number, value: number): void {
    const end = sector + count;
    while (sector < end) {
      const leafNumber = Math.floor(sector / LEAF_SECTORS);
      const leafEnd = Math.min(end, (leafNumber + 1) * LEAF_SECTORS);
      if (value === ZERO && leafEnd - sector === LEAF_SECTORS) {
        this.#dropLeaf(leafNumber);
        this.#leaves[leafNumber] = ZERO_LEAF;
        sector = leafEnd;
        continue;
      }
      if (value === ZERO && this.#leaves[leafNumber] === ZERO_LEAF) {
        sector = leafEnd;
        continue;
      }
      const leaf = this.#ownLeaf(leafNumber);
      const begin = sector;
      while (sector < leafEnd) {
        const within = sector % GRANULE;
        const step = Math.min(GRANULE - within, leafEnd - sector);
        if (step === GRANULE) this.#setGranule(leaf, sector / GRANULE, value);
        else this.#setPart(leaf, Math.floor(sector / GRANULE), within, step, value);
        if (value !== ZERO) value += step;
        sector += step;
      }
      const count = leafEnd - begin;
      if (value === ZERO && count * 4 >= LEAF_SECTORS && leaf.every((at) => at === ZERO))
        this.#leaves[leafNumber] = ZERO_LEAF;
    }
  }

  #setGranule(leaf: Uint32Array, granule: number, value: number): void {
    this.#drop(leaf[granule % LEAF] as number);
    leaf[granule % LEAF] = value;
  }

  #setPart(leaf: Uint32Array, granule: number, within: number, count: number, value: number): void {
    const old = leaf[granule % LEAF] as number;
    let slot = old - MIXED;
    if (slot < 0) {
      slot = this.#slots.take();
      for (let i = 0; i < GRANULE; i++) this.#slots.set(slot, i, placeAt(old, i));
      leaf[granule % LEAF] = MIXED + slot;
    }
    for (let i = within; i < within + count; i++) {
      if (this.#slots.get(slot, i) >= FIRST_DATA_SECTOR) this.#live--;
      this.#slots.set(slot, i, value === ZERO ? ZERO : value + i - within);
    }
    const first = this.#slots.get(slot, 0);
    if (first === ABSENT) return;
    for (let i = 1; i < GRANULE; i++) if (this.#slots.get(slot, i) !== placeAt(first, i)) return;
    // In one piece again.
    this.#slots.giveBack(slot);
    leaf[granule % LEAF] = first;
  }

  #ownLeaf(number: number): Uint32Array {
    const old = this.#leaves[number];
    if (old !== undefined && old !== ZERO_LEAF) return old;
    const own = old === undefined ? new Uint32Array(LEAF) : ZERO_LEAF.slice();
    this.#leaves[number] = own;
    return own;
  }

  #dropLeaf(number: number): void {
    const leaf = this.#leaves[number];
    if (leaf === undefined || leaf === ZERO_LEAF) return;
    for (let i = 0; i < LEAF; i++) this.#drop(leaf[i] as number);
  }

  /** What a granule had is not read any more. */
  #drop(value: number): void {
    if (value < FIRST_DATA_SECTOR) return;
    if (value < MIXED) {
      this.#live -= GRANULE;
      return;
    }
    const slot = value - MIXED;
    for (let i = 0; i < GRANULE; i++) if (this.#slots.get(slot, i) >= FIRST_DATA_SECTOR) this.#live--;
    this.#slots.giveBack(slot);
  }
}

/** Place of the n-th sector of a granule that is in one piece. */
function placeAt(value: number, n: number): number {
  return value >= FIRST_DATA_SECTOR ? value + n : value;
}
