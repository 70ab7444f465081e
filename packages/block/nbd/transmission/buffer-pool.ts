/**
 * As much as a unix socket holds (net.core.wmem_default of unix(7)): the requests that a client has made meanwhile come with
 * one call of the host, and are answered with one.
 */
const INCOMING = 256 * 1024;

/** Buffers of all connections of a thread; used ones are kept, since making large ones costs more than filling them. */
export class BufferPool {
  /** What a socket has is read into this, and used or copied before the next one is read. */
  readonly incoming = Buffer.allocUnsafeSlow(INCOMING);
  readonly #keepBytes: number;
  readonly #free = new Map<number, Buffer[]>();
  #kept = 0;

  /** @param keepBytes how much unused memory is kept */
  constructor(keepBytes = 16 * 1024 * 1024) {
    this.#keepBytes = keepBytes;
  }

  /** A buffer for replies, of at least so many bytes, a power of two, with whatever it held before in it. */
  take(bytes: number): Buffer {
    const size = sizeClass(bytes);
    const buffer = this.#free.get(size)?.pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(size);
    this.#kept -= size;
    return buffer;
  }

  give(buffer: Buffer): void {
    const size = buffer.length;
    if (this.#kept + size > this.#keepBytes) return;
    this.#kept += size;
    const free = this.#free.get(size);
    if (free === undefined) this.#free.set(size, [buffer]);
    else free.push(buffer);
  }
}

const SMALLEST = 64 * 1024;

function sizeClass(bytes: number): number {
  return Math.max(SMALLEST, 2 ** Math.ceil(Math.log2(bytes)));
}
