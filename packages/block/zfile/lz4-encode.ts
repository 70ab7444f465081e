const MIN_MATCH = 4;
/** The format wants the last five bytes as literals, and no match to begin in the last twelve. */
const LAST_LITERALS = 5;
const MATCH_LIMIT = 12;
const HASH_BITS = 12;

/** Longest result for a block of this length. */
export function lz4Bound(length: number): number {
  return length + Math.floor(length / 255) + 16;
}

/** Encodes blocks of at most 64 KiB, one after the other, as raw LZ4 blocks: greedy, with one hash table. */
export class Lz4Encoder {
  readonly #table = new Int32Array(1 << HASH_BITS);
  /** Positions of earlier blocks are below it, so the table need not be wiped. */
  #base = 1;
  #target = new Uint8Array(0);

  /** @returns the block; valid until the next call */
  encode(source: Uint8Array): Uint8Array {
    const bound = lz4Bound(source.length);
    if (this.#target.length < bound) this.#target = new Uint8Array(bound);
    if (this.#base + source.length > 2 ** 30) {
      this.#table.fill(0);
      this.#base = 1;
    }
    const { length } = source;
    const table = this.#table;
    const base = this.#base;
    const lastMatch = length - MATCH_LIMIT;
    let out = 0;
    let anchor = 0;
    for (let s = 0, misses = 0; s < lastMatch; ) {
      const word = wordAt(source, s);
      const hash = Math.imul(word, 0x9e37_79b1) >>> (32 - HASH_BITS);
      const candidate = (table[hash] as number) - base;
      table[hash] = s + base;
      if (candidate < 0 || wordAt(source, candidate) !== word) {
        // Steps grow where nothing repeats, as in noise.
        s += 1 + (misses++ >>> 6);
        continue;
      }
      misses = 0;
      let end = s + MIN_MATCH;
      const distance = s - candidate;
      while (end < length - LAST_LITERALS && source[end] === source[end - distance]) end++;
      out = this.#sequence(source, anchor, s, out, end - s, distance);
      s = anchor = end;
    }
    out = this.#sequence(source, anchor, length, out, 0, 0);
    this.#base = base + length;
    return this.#target.subarray(0, out);
  }

  /** Literals `from` to `to`, then a match unless its length is 0. */
  #sequence(source: Uint8Array, from: number, to: number, out: number, match: number, distance: number): number {
    const target = this.#target;
    const literals = to - from;
    const extra = match === 0 ? 0 : match - MIN_MATCH;
    target[out++] = (Math.min(literals, 15) << 4) | Math.min(extra, 15);
    if (literals >= 15) out = this.#length(literals - 15, out);
    if (literals > 24) target.set(source.subarray(from, to), out);
    else for (let i = 0; i < literals; i++) target[out + i] = source[from + i] as number;
    out += literals;
    if (match === 0) return out;
    target[out++] = distance & 0xff;
    target[out++] = distance >>> 8;
    return extra >= 15 ? this.#length(extra - 15, out) : out;
  }

  #length(rest: number, out: number): number {
    for (; rest >= 255; rest -= 255) this.#target[out++] = 255;
    this.#target[out++] = rest;
    return out;
  }
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}
