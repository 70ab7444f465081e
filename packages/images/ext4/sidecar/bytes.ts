const FIRST = 64 * 1024;

/** Collects numbers and bytes, little-endian. */
export class ByteWriter {
  #buffer = Buffer.alloc(FIRST);
  #length = 0;

  u8(value: number): void {
    this.#room(1);
    this.#length = this.#buffer.writeUInt8(value, this.#length);
  }

  u16(value: number): void {
    this.#room(2);
    this.#length = this.#buffer.writeUInt16LE(value, this.#length);
  }

  u32(value: number): void {
    this.#room(4);
    this.#length = this.#buffer.writeUInt32LE(value, this.#length);
  }

  f64(value: number): void {
    this.#room(8);
    this.#length = this.#buffer.writeDoubleLE(value, this.#length);
  }

  bytes(value: Uint8Array): void {
    this.#room(value.length);
    this.#buffer.set(value, this.#length);
    this.#length += value.length;
  }

  /** @param text at most 255 bytes, one a character (latin1) */
  shortText(text: string): void {
    this.u8(text.length);
    this.#room(text.length);
    this.#length += this.#buffer.write(text, this.#length, 'latin1');
  }

  /** @param text at most 65,535 bytes, one a character (latin1) */
  text(text: string): void {
    this.u16(text.length);
    this.#room(text.length);
    this.#length += this.#buffer.write(text, this.#length, 'latin1');
  }

  result(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #room(count: number): void {
    if (this.#length + count <= this.#buffer.length) return;
    const larger = Buffer.alloc(Math.max(this.#buffer.length * 2, this.#length + count));
    this.#buffer.copy(larger);
    this.#buffer = larger;
  }
}

/** Reads what ByteWriter wrote; past the end it throws `RangeError`. */
export class ByteCursor {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#buffer.length;
  }

  u8(): number {
    return this.#buffer.readUInt8(this.#skip(1));
  }

  u16(): number {
    return this.#buffer.readUInt16LE(this.#skip(2));
  }

  u32(): number {
    return this.#buffer.readUInt32LE(this.#skip(4));
  }

  f64(): number {
    return this.#buffer.readDoubleLE(this.#skip(8));
  }

  bytes(count: number): Buffer {
    const at = this.#skip(count);
    return this.#buffer.subarray(at, at + count);
  }

  shortText(): string {
    return this.bytes(this.u8()).toString('latin1');
  }

  text(): string {
    return this.bytes(this.u16()).toString('latin1');
  }

  #skip(count: number): number {
    const at = this.#at;
    if (at + count > this.#buffer.length) throw new RangeError('the model ends early');
    this.#at += count;
    return at;
  }
}
