import { DESCRIPTOR_SIZE } from '../model/geometry.ts';
import { crc32c, groupSeed } from './checksum.ts';

const FLAG = { inodesUninitialised: 1, blocksUninitialised: 2, tableZeroed: 4 } as const;

export interface GroupContent {
  readonly group: number;
  readonly blockBitmap: number;
  readonly inodeBitmap: number;
  readonly inodeTable: number;
  readonly freeBlocks: number;
  readonly freeInodes: number;
  readonly folders: number;
  /** inodes at the end of the table that were never used */
  readonly unusedInodes: number;
  /** undefined where the bitmap is not on the disk, because all of it is free */
  readonly blockBits: Uint8Array | undefined;
  readonly inodeBits: Uint8Array | undefined;
}

/** Writes a descriptor of 32 bytes (kernel documentation, "Block Group Descriptors"). `target` is zeros. */
export function encodeDescriptor(target: Buffer, content: GroupContent, seed: number): void {
  target.writeUInt32LE(content.blockBitmap, 0);
  target.writeUInt32LE(content.inodeBitmap, 4);
  target.writeUInt32LE(content.inodeTable, 8);
  target.writeUInt16LE(content.freeBlocks, 12);
  target.writeUInt16LE(content.freeInodes, 14);
  target.writeUInt16LE(content.folders, 16);
  // What is not in any layer reads as zeros, so the guest need not zero the tables.
  const flags =
    FLAG.tableZeroed |
    (content.inodeBits === undefined ? FLAG.inodesUninitialised : 0) |
    (content.blockBits === undefined ? FLAG.blocksUninitialised : 0);
  target.writeUInt16LE(flags, 18);
  if (content.blockBits !== undefined) target.writeUInt16LE(crc32c(seed, content.blockBits) & 0xffff, 24);
  if (content.inodeBits !== undefined) target.writeUInt16LE(crc32c(seed, content.inodeBits) & 0xffff, 26);
  target.writeUInt16LE(content.unusedInodes, 28);
  const checksum = crc32c(groupSeed(seed, content.group), target.subarray(0, DESCRIPTOR_SIZE));
  target.writeUInt16LE(checksum & 0xffff, 30);
}
