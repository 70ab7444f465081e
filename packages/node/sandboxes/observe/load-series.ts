import type { LoadSample } from './contract.ts';

const FIELDS = ['at', 'cpuCount', 'cpuUsedPct', 'memUsed', 'memTotal', 'memCache', 'diskUsed', 'diskTotal'] as const;
const FIRST_CAPACITY = 16;

/** The last samples of a sandbox in a ring of plain numbers: 64 bytes each, made larger only as they come. */
export class LoadSeries {
  readonly #capacity: number;
  #ring = new Float64Array(0);
  #size = 0;
  /** place of the oldest one */
  #start = 0;

  constructor(capacity: number) {
    this.#capacity = Math.max(1, capacity);
  }

  add(sample: LoadSample): void {
    const room = this.#ring.length / FIELDS.length;
    if (this.#size === room && room < this.#capacity) this.#grow(room);
    const places = this.#ring.length / FIELDS.length;
    const place = (this.#start + this.#size) % places;
    this.#ring.set(
      FIELDS.map((field) => sample[field]),
      place * FIELDS.length,
    );
    if (this.#size < places) this.#size += 1;
    else this.#start = (this.#start + 1) % places;
  }

  /** Those between two moments, both inclusive, oldest first. */
  between(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): LoadSample[] {
    return Array.from({ length: this.#size }, (_, index) => this.#read(index)).filter(
      ({ at }) => at >= from && at <= to,
    );
  }

  latest(): LoadSample | undefined {
    return this.#size === 0 ? undefined : this.#read(this.#size - 1);
  }

  /** Only ever called before the ring has turned, so that the samples stand in their order from its beginning. */
  #grow(room: number): void {
    const larger = new Float64Array(Math.min(this.#capacity, Math.max(FIRST_CAPACITY, room * 2)) * FIELDS.length);
    larger.set(this.#ring);
    this.#ring = larger;
  }

  #read(index: number): LoadSample {
    const places = this.#ring.length / FIELDS.length;
    const offset = ((this.#start + index) % places) * FIELDS.length;
    const value = (field: (typeof FIELDS)[number]) => this.#ring[offset + FIELDS.indexOf(field)] ?? 0;
    return {
      at: value('at'),
      cpuCount: value('cpuCount'),
      cpuUsedPct: value('cpuUsedPct'),
      memUsed: value('memUsed'),
      memTotal: value('memTotal'),
      memCache: value('memCache'),
      diskUsed: value('diskUsed'),
      diskTotal: value('diskTotal'),
    };
  }
}
