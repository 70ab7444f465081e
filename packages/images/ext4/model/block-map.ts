import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { BLOCK_SIZE, BLOCKS_PER_GROUP, type Geometry } from './geometry.ts';

export interface Run {
  readonly start: number;
  readonly count: number;
}

/** What has to be kept of a block map. */
export interface BlockMapState {
  /** every block from here on was never used */
  readonly next: number;
  /** one bit a block, for all groups that have one below `next`; BLOCK_SIZE bytes a group */
  readonly bits: Buffer;
}

/**
 * Which blocks are in use. Blocks are given out one behind the other, so that a layer is one stream; only when the end
 * of the disk is reached are freed ones used again, the first ones first.
 */
export class BlockMap {
  readonly #geometry: Geometry;
  readonly #groups: Uint8Array[] = [];
  readonly #freeIn: number[];
  #next = 0;
  #free: number;
  #cursor = 0;
  /** groups that changed since the last `clean` */
  #dirty = new Set<number>();

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
    this.#free = geometry.blockCount;
    this.#freeIn = Array.from({ length: geometry.groupCount }, (_, group) => this.#sizeOf(group));
  }

  /** @throws RangeError when the state is not one of this geometry */
  static restore(geometry: Geometry, state: BlockMapState): BlockMap {
    const map = new BlockMap(geometry);
    const groups = Math.ceil(state.next / BLOCKS_PER_GROUP);
    if (state.next > geometry.blockCount || state.bits.length !== groups * BLOCK_SIZE)
      throw new RangeError('block map');
    map.#next = state.next;
    for (let group = 0; group < groups; group++) {
      const bits = new Uint8Array(state.bits.subarray(group * BLOCK_SIZE, (group + 1) * BLOCK_SIZE));
      map.#groups.push(bits);
      const used = bits.reduce((sum, byte) => sum + (ONES[byte] ?? 0), 0);
      map.#freeIn[group] = map.#sizeOf(group) - used;
      map.#free -= used;
    }
    return map;
  }

  get state(): BlockMapState {
    return { next: this.#next, bits: Buffer.concat(this.#groups) };
  }

  get free(): number {
    return this.#free;
  }

  freeIn(group: number): number {
    return this.#freeIn[group] ?? 0;
  }

  /**
   * Between 1 and `max` blocks in a row.
   * @throws AenvError `image_invalid` when the disk is full
   */
  take(max: number): Run {
    const { blockCount } = this.#geometry;
    const run =
      this.#next < blockCount
        ? { start: this.#next, count: Math.min(max, blockCount - this.#next) }
        : this.#firstFree(max);
    for (let at = run.start; at < run.start + run.count; at++) this.#set(at, true);
    this.#next = Math.max(this.#next, run.start + run.count);
    return run;
  }

  release(run: Run): void {
    for (let at = run.start; at < run.start + run.count; at++) this.#set(at, false);
    this.#cursor = Math.min(this.#cursor, run.start);
  }

  /** Groups that changed since the last call, in order. */
  takeDirty(): number[] {
    const dirty = [...this.#dirty].sort((a, b) => a - b);
    this.#dirty = new Set();
    return dirty;
  }

  /** Whether a group has a bitmap on the disk; the others are empty as a whole. */
  isInitialised(group: number): boolean {
    // The last one always has, since its end needs padding.
    return group < this.#groups.length || group === this.#geometry.groupCount - 1;
  }

  /** The bitmap of a group as it stands on the disk: what is behind the end counts as used. */
  bitmap(group: number): Uint8Array {
    const bits = Uint8Array.from(this.#groups[group] ?? new Uint8Array(BLOCK_SIZE));
    for (let at = this.#sizeOf(group); at < BLOCKS_PER_GROUP; at++)
      bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7));
    return bits;
  }

  #sizeOf(group: number): number {
    return Math.min(BLOCKS_PER_GROUP, this.#geometry.blockCount - group * BLOCKS_PER_GROUP);
  }

  #set(block: number, used: boolean): void {
    const group = Math.floor(block / BLOCKS_PER_GROUP);
    while (this.#groups.length <= group) this.#groups.push(new Uint8Array(BLOCK_SIZE));
    const bits = this.#groups[group] ?? new Uint8Array(BLOCK_SIZE);
    const at = block % BLOCKS_PER_GROUP;
    const mask = 1 << (at & 7);
    const byte = bits[at >> 3] ?? 0;
    if (((byte & mask) !== 0) === used) throw new Error(`block ${block} is ${used ? 'used' : 'free'} already`);
    bits[at >> 3] = byte ^ mask;
    const change = used ? -1 : 1;
    this.#freeIn[group] = (this.#freeIn[group] ?? 0) + change;
    this.#free += change;
    this.#dirty.add(group);
  }

  #firstFree(max: number): Run {
    const { blockCount } = this.#geometry;
    for (let start = this.#cursor; start < blockCount; start++) {
      if (start % BLOCKS_PER_GROUP === 0 && this.#freeIn[start / BLOCKS_PER_GROUP] === 0) {
        start += BLOCKS_PER_GROUP - 1;
        continue;
      }
      if (this.#isUsed(start)) continue;
      let count = 1;
      while (count < max && start + count < blockCount && !this.#isUsed(start + count)) count++;
      this.#cursor = start + count;
      return { start, count };
    }
    throw new AenvError('image_invalid', `the image does not fit on a disk of ${this.#geometry.sizeBytes} bytes`, {
      remediation: 'Use a larger disk or a smaller image.',
    });
  }

  #isUsed(block: number): boolean {
    const bits = this.#groups[Math.floor(block / BLOCKS_PER_GROUP)];
    const at = block % BLOCKS_PER_GROUP;
    return bits !== undefined && ((bits[at >> 3] ?? 0) & (1 << (at & 7))) !== 0;
  }
}

/** set bits of a byte */
const ONES = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length);
