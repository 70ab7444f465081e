const POLYNOMIAL = 0xa001;

/**
 * CRC-16 (ARC) over parts that follow one another, as the checksums of group descriptors of file systems with the older
 * feature uninit_bg have it.
 * @param register what it begins with
 */
export function crc16(register: number, ...parts: readonly Uint8Array[]): number {
  let crc = register;
  for (const part of parts) {
    for (const byte of part) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ POLYNOMIAL;
    }
  }
  return crc;
}
