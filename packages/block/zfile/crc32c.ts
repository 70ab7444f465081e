const POLYNOMIAL = 0x82f6_3b78;
const TABLES = makeTables();

/**
 * CRC-32C (Castagnoli) as ZFile uses it: the register begins with the seed and is not inverted at the end. A value of
 * one part is the seed of the next.
 */
export function rawCrc32c(bytes: Uint8Array, seed = 0): number {
  const t = TABLES;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let crc = seed;
  let i = 0;
  // Eight bytes a step, each through a table of its own.
  for (const end = bytes.length - 7; i < end; i += 8) {
    const first = view.getInt32(i, true) ^ crc;
    const second = view.getInt32(i + 4, true);
    crc =
      (t[0x700 + (first & 0xff)] as number) ^
      (t[0x600 + ((first >>> 8) & 0xff)] as number) ^
      (t[0x500 + ((first >>> 16) & 0xff)] as number) ^
      (t[0x400 + (first >>> 24)] as number) ^
      (t[0x300 + (second & 0xff)] as number) ^
      (t[0x200 + ((second >>> 8) & 0xff)] as number) ^
      (t[0x100 + ((second >>> 16) & 0xff)] as number) ^
      (t[second >>> 24] as number);
  }
  for (; i < bytes.length; i++) crc = (t[(crc ^ (bytes[i] as number)) & 0xff] as number) ^ (crc >>> 8);
  return crc >>> 0;
}

/** Table n: what a byte does that has n further bytes behind it. */
function makeTables(): Int32Array {
  const tables = new Int32Array(8 * 256);
  for (let i = 0; i < 256; i++) {
    let crc = i;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
    tables[i] = crc;
  }
  for (let i = 256; i < tables.length; i++) {
    const before = tables[i - 256] as number;
    tables[i] = (before >>> 8) ^ (tables[before & 0xff] as number);
  }
  return tables;
}
