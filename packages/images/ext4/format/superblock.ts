import { BLOCKS_PER_GROUP, type Geometry, INO, INODE_SIZE, INODES_PER_GROUP } from '../model/geometry.ts';
import { crc32c, START } from './checksum.ts';

const COMPAT = { hasJournal: 0x4, extAttr: 0x8, dirIndex: 0x20, sparseSuper2: 0x200 } as const;
const INCOMPAT = { filetype: 0x2, extents: 0x40, flexBg: 0x200 } as const;
const RO_COMPAT = {
  sparseSuper: 0x1,
  largeFile: 0x2,
  hugeFile: 0x8,
  dirNlink: 0x20,
  extraIsize: 0x40,
  metadataCsum: 0x400,
} as const;
const UNSIGNED_HASH = 2;
const DEFAULT_XATTR_AND_ACL = 0xc;

/** Part of cache keys: everything here that changes what is written. */
export const FEATURES = [COMPAT, INCOMPAT, RO_COMPAT].map((set) => sum(set).toString(16)).join('.');

export interface SuperblockContent {
  readonly geometry: Geometry;
  readonly freeBlocks: number;
  readonly freeInodes: number;
  /** 16 bytes */
  readonly uuid: Buffer;
  /** 16 bytes */
  readonly hashSeed: Buffer;
  /** at most 16 bytes */
  readonly label: string;
  /** the 60 bytes of the journal's inode, kept a second time */
  readonly journalBlock: Buffer;
  readonly journalBytes: number;
}

/**
 * The superblock, 1024 bytes (kernel documentation, "Super Block"). There are no copies of it (sparse_super2 without
 * backup groups), so that the area of data has no gaps; and no times, so that equal content gives equal bytes.
 */
export function encodeSuperblock(content: SuperblockContent): Buffer {
  const { geometry } = content;
  const block = Buffer.alloc(1024);
  const u32 = (at: number, value: number) => block.writeUInt32LE(value >>> 0, at);
  const u16 = (at: number, value: number) => block.writeUInt16LE(value, at);
  u32(0, geometry.inodeCount);
  u32(4, geometry.blockCount);
  u32(12, content.freeBlocks);
  u32(16, content.freeInodes);
  // Sizes are powers of two over 1024.
  u32(24, 2);
  u32(28, 2);
  u32(32, BLOCKS_PER_GROUP);
  u32(36, BLOCKS_PER_GROUP);
  u32(40, INODES_PER_GROUP);
  // No check after so many mounts.
  u16(54, 0xffff);
  u16(56, 0xef53);
  // Clean; errors are noted and the guest goes on.
  u16(58, 1);
  u16(60, 1);
  u32(76, 1);
  u32(84, INO.lostAndFound);
  u16(88, INODE_SIZE);
  u32(92, sum(COMPAT));
  u32(96, sum(INCOMPAT));
  u32(100, sum(RO_COMPAT));
  content.uuid.copy(block, 104);
  block.write(content.label, 120, 16, 'latin1');
  u32(224, INO.journal);
  content.hashSeed.copy(block, 236);
  block.writeUInt8(1, 252);
  block.writeUInt8(1, 253);
  u32(256, DEFAULT_XATTR_AND_ACL);
  content.journalBlock.copy(block, 268);
  u32(268 + 60, Math.floor(content.journalBytes / 2 ** 32));
  u32(268 + 64, content.journalBytes);
  u16(348, 32);
  u16(350, 32);
  u32(352, UNSIGNED_HASH);
  block.writeUInt8(Math.ceil(Math.log2(Math.max(2, geometry.groupCount))), 372);
  // The one kind of checksum that there is, CRC-32C.
  block.writeUInt8(1, 373);
  u32(1020, crc32c(START, block.subarray(0, 1020)));
  return block;
}

function sum(set: Readonly<Record<string, number>>): number {
  return Object.values(set).reduce((total, bit) => total | bit, 0);
}
