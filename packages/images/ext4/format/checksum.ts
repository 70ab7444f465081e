import { rawCrc32c } from '@aenv/block/zfile/crc32c.ts';

/**
 * Checksums of ext4 (feature metadata_csum) are CRC-32C without the final inversion; what one covers in several parts
 * goes on from the value of the part before.
 * @returns unsigned 32 bits
 */
export function crc32c(register: number, data: Uint8Array): number {
  return rawCrc32c(data, register);
}

function crc32cNumber(register: number, value: number): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return rawCrc32c(bytes, register);
}

/** What the first checksum of a chain begins with. */
export const START = 0xffffffff;

/** What the checksums of one file system begin with. */
export function fileSystemSeed(uuid: Buffer): number {
  return crc32c(START, uuid);
}

/** What the checksums of one inode and of its folder and extent blocks begin with. */
export function inodeSeed(seed: number, ino: number, generation = 0): number {
  return crc32cNumber(crc32cNumber(seed, ino), generation);
}

/** What the checksum of a group descriptor begins with. */
export function groupSeed(seed: number, group: number): number {
  return crc32cNumber(seed, group);
}
