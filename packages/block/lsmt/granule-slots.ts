/** Sectors of a granule: 4 KiB. */
export const GRANULE = 8;

/** Slots of a chunk: 32 KiB. */
const CHUNK = 1024;

/** The places of the sectors of granules that are not in one piece: 32 bytes for each, taken and given back. */
export class GranuleSlots {
  readonly #chunks: Uint32Array[] = [];
  readonly #free: number[] = [];
  #used = 0;

  /** @returns the number of a slot; what is in it is left over from its last use */
  take(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#used === this.#chunks.length * CHUNK) this.#chunks.push(new Uint32Array(CHUNK * GRANULE));
    return this.#used++;
  }

  giveBack(slot: number): void {
    this.#free.push(slot);
  }

  get(slot: number, sector: number): number {
    return this.#chunk(slot)[(slot % CHUNK) * GRANULE + sector] as number;
  }

  set(slot: number, sector: number, place: number): void {
    this.#chunk(slot)[(slot % CHUNK) * GRANULE + sector] = place;
  }

  #chunk(slot: number): Uint32Array {
    return this.#chunks[Math.floor(slot / CHUNK)] as Uint32Array;
  }
}
