import { MAX_WRITE_LENGTH, SEGMENT_SIZE } from '../../lsmt/format.ts';
import { writeSegment } from '../../lsmt/segment.ts';

/** Index entries in the order of their writes, as the bytes that go to the index file. */
export class EntryQueue {
  #bytes = new Uint8Array(256 * SEGMENT_SIZE);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** Bytes of the entries. */
  get length(): number {
    return this.#length;
  }

  /** Adds what was written to a place of the data file, in entries of at most 4 MiB. */
  addData(sector: number, count: number, place: number): void {
    for (let done = 0; done < count; done += MAX_WRITE_LENGTH) {
      this.#add(sector + done, Math.min(MAX_WRITE_LENGTH, count - done), place + done, false);
    }
  }

  /** Cut at multiples of 4 MiB: whole leaves of a sector map are zeroed in no time when the log is replayed. */
  addZero(sector: number, count: number, place: number): void {
    for (const end = sector + count; sector < end; ) {
      const next = Math.min(end, sector - (sector % MAX_WRITE_LENGTH) + MAX_WRITE_LENGTH);
      this.#add(sector, next - sector, place, true);
      sector = next;
    }
  }

  addBytes(entries: Uint8Array): void {
    this.#reserve(entries.length);
    this.#bytes.set(entries, this.#length);
    this.#length += entries.length;
  }

  /** The bytes from `start` to `end`; they stay valid until the queue changes. */
  bytes(start = 0, end = this.#length): Uint8Array {
    return this.#bytes.subarray(start, end);
  }

  /** Takes back what was added last. */
  shrinkTo(length: number): void {
    this.#length = length;
  }

  dropFirst(length: number): void {
    this.#bytes.copyWithin(0, length, this.#length);
    this.#length -= length;
  }

  #add(sector: number, count: number, place: number, zeroed: boolean): void {
    this.#reserve(SEGMENT_SIZE);
    writeSegment(this.#view, this.#length, sector, count, place, zeroed);
    this.#length += SEGMENT_SIZE;
  }

  #reserve(length: number): void {
    if (this.#length + length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + length));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}
