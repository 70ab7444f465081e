import type { Durability } from '../../layers/contract.ts';
import type { Volume, WriteOp } from '../../volume/contract.ts';

const SECTOR = 512;

/** A flat disk in memory that tells what was asked of it, and can be made slow or broken. */
export class MemoryVolume implements Volume {
  readonly id = 'memory';
  readonly data: Buffer;
  readonly readOnly: boolean;
  readonly flushes: (Durability | undefined)[] = [];
  /** numbers of writes that came together */
  readonly groups: number[] = [];
  readonly #present: Uint8Array;
  /** When set, reads wait for it; they copy their data only afterwards. */
  gate: Promise<void> | undefined;
  /** When set, flushes wait for it. */
  flushGate: Promise<void> | undefined;
  /** When set, everything throws it. */
  fault: Error | undefined;

  constructor(size: number, readOnly = false) {
    this.data = Buffer.alloc(size);
    this.#present = new Uint8Array(size / SECTOR);
    this.readOnly = readOnly;
  }

  get size(): number {
    return this.data.length;
  }

  read(target: Uint8Array, offset: number): Promise<void> | undefined {
    this.#check(offset, target.length);
    const copy = () => {
      if (this.fault !== undefined) throw this.fault;
      this.data.copy(target, 0, offset, offset + target.length);
    };
    if (this.gate !== undefined) return this.gate.then(copy);
    copy();
    return undefined;
  }

  write(data: Uint8Array, offset: number): void {
    this.writeMany([{ data, offset }]);
  }

  writeMany(writes: readonly WriteOp[]): void {
    this.groups.push(writes.length);
    for (const { data, offset } of writes) {
      this.#check(offset, data.length);
      this.data.set(data, offset);
      this.#present.fill(1, offset / SECTOR, (offset + data.length) / SECTOR);
    }
  }

  zero(offset: number, length: number): void {
    this.#check(offset, length);
    this.data.fill(0, offset, offset + length);
    this.#present.fill(0, offset / SECTOR, (offset + length) / SECTOR);
  }

  discard(offset: number, length: number): void {
    this.zero(offset, length);
  }

  async flush(atLeast?: Durability): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    await this.flushGate;
    this.flushes.push(atLeast);
  }

  *dataRanges(offset: number, length: number): Iterable<{ offset: number; length: number }> {
    this.#check(offset, length);
    for (let at = offset; at < offset + length; at += SECTOR) {
      if (this.#present[at / SECTOR] === 1) yield { offset: at, length: SECTOR };
    }
  }

  #check(offset: number, length: number): void {
    if (this.fault !== undefined) throw this.fault;
    if (offset % SECTOR !== 0 || length % SECTOR !== 0 || offset < 0 || offset + length > this.size) {
      throw new Error(`the export must not ask for ${length} bytes at ${offset}`);
    }
  }
}
