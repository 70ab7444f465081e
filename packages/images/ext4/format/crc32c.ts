/** The Castagnoli polynomial, bits reversed (RFC 3720, appendix B.4). */
const POLYNOMIAL = 0x82f63b78;
const TABLES = makeTables();

function makeTables(): Uint32Array {
  const tables = new Uint32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ POLYNOMIAL;
    tables[byte] = value;
  }
  for (let at = 256; at < tables.length; at++) {
    const previous = tables[at - 256] ?? 0;
    tables[at] = (previous >>> 8) ^ (tables[previous & 0xff] ?? 0);
  }
  return tables;
}

const at = (table: number, byte: number): number => TABLES[table * 256 + byte] ?? 0;

/**
 * Goes on with a CRC-32C without the usual inversions, as ext4 uses it: the register goes in and comes out as it is.
 * @param register from the call before, or the seed
 * @returns unsigned 32 bits
 */
export function crc32c(register: number, data: Uint8Array): number {
  let crc = register >>> 0;
  const { length } = data;
  let position = 0;
  // Eight bytes a step ("slicing by 8").
  for (; position + 8 <= length; position += 8) {
    const low =
      crc ^
      ((data[position] ?? 0) |
        ((data[position + 1] ?? 0) << 8) |
        ((data[position + 2] ?? 0) << 16) |
        ((data[position + 3] ?? 0) << 24));
    crc =
      at(7, low & 0xff) ^
      at(6, (low >>> 8) & 0xff) ^
      at(5, (low >>> 16) & 0xff) ^
      at(4, low >>> 24) ^
      at(3, data[position + 4] ?? 0) ^
      at(2, data[position + 5] ?? 0) ^
      at(1, data[position + 6] ?? 0) ^
      at(0, data[position + 7] ?? 0);
  }
  for (; position < length; position++) crc = (crc >>> 8) ^ at(0, (crc ^ (data[position] ?? 0)) & 0xff);
  return crc >>> 0;
}

/** Goes on with a 32-bit number, least significant byte first. */
export function crc32cNumber(register: number, value: number): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return crc32c(register, bytes);
}
