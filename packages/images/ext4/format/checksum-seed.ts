import { crc32c, crc32cNumber } from './crc32c.ts';

/** What the checksums of one file system begin with (feature metadata_csum). */
export function fileSystemSeed(uuid: Buffer): number {
  return crc32c(0xffffffff, uuid);
}

/** What the checksums of one inode and of its folder and extent blocks begin with; its generation is 0. */
export function inodeSeed(seed: number, ino: number): number {
  return crc32cNumber(crc32cNumber(seed, ino), 0);
}
