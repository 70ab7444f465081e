import { crc32c, START } from './checksum.ts';

/** Bytes of the disk before the superblock (kernel documentation, "Super Block"). */
export const SUPERBLOCK_OFFSET = 1024;
const SIZE = 1024;
const MAGIC = 0xef53;
const METADATA_CSUM = 0x400;
const AT = { magic: 56, roCompat: 100, label: 120, checksum: 1020 } as const;
const LABEL_SIZE = 16;

/**
 * A superblock with another label, whoever has written it; nothing else depends on the label.
 * @returns undefined for bytes that are no superblock of ext4
 */
export function withLabel(superblock: Uint8Array, label: string): Buffer | undefined {
  if (!/^[\x21-\x7e]{1,16}$/.test(label)) throw new RangeError('label');
  const block = Buffer.from(superblock.subarray(0, SIZE));
  if (block.length < SIZE || block.readUInt16LE(AT.magic) !== MAGIC) return undefined;
  block.fill(0, AT.label, AT.label + LABEL_SIZE).write(label, AT.label, 'latin1');
  if ((block.readUInt32LE(AT.roCompat) & METADATA_CSUM) !== 0) {
    block.writeUInt32LE(crc32c(START, block.subarray(0, AT.checksum)) >>> 0, AT.checksum);
  }
  return block;
}
