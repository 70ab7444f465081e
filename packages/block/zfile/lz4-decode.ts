const MIN_MATCH = 4;

/**
 * Decodes one raw LZ4 block (no frame, no length before it; lz4_Block_format.md of the lz4 project). Every read and write
 * is checked, so any input is safe.
 * @returns true if the block is well-formed and fills `target` exactly
 */
export function lz4Decode(source: Uint8Array, target: Uint8Array): boolean {
  const sourceEnd = source.length;
  const targetEnd = target.length;
  let s = 0;
  let t = 0;
  while (s < sourceEnd) {
    const token = source[s++] as number;
    let literals = token >>> 4;
    if (literals === 15) {
      let more: number;
      do {
        if (s >= sourceEnd) return false;
        more = source[s++] as number;
        literals += more;
      } while (more === 255);
    }
    if (literals > sourceEnd - s || literals > targetEnd - t) return false;
    if (literals > 24) {
      target.set(source.subarray(s, s + literals), t);
      s += literals;
      t += literals;
    } else {
      for (const end = s + literals; s < end; ) target[t++] = source[s++] as number;
    }
    // The last sequence has literals only.
    if (s === sourceEnd) return t === targetEnd;

    if (s + 2 > sourceEnd) return false;
    const distance = (source[s] as number) | ((source[s + 1] as number) << 8);
    s += 2;
    if (distance === 0 || distance > t) return false;
    let length = (token & 15) + MIN_MATCH;
    if (length === 15 + MIN_MATCH) {
      let more: number;
      do {
        if (s >= sourceEnd) return false;
        more = source[s++] as number;
        length += more;
      } while (more === 255);
    }
    if (length > targetEnd - t) return false;
    const from = t - distance;
    if (length > 24 && distance >= length) target.copyWithin(t, from, from + length);
    else if (length > 24 && distance === 1) target.fill(target[from] as number, t, t + length);
    else for (let i = 0; i < length; i++) target[t + i] = target[from + i] as number;
    t += length;
  }
  return false;
}
