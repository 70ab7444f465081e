import { INODE_SIZE } from '../model/geometry.ts';
import type { Node, NodeKind, Timestamp } from '../model/node.ts';
import { crc32c, inodeSeed } from './checksum.ts';

const XATTR_MAGIC = 0xea020000;
const FLAG = { index: 0x1000, extents: 0x80000 } as const;
const EXTRA_SIZE = 32;
/** Link counts of folders beyond this are told as 1 (feature dir_nlink). */
export const MAX_LINKS = 65_000;
/** Targets up to this length stand in the inode itself. */
export const MAX_INLINE_TARGET = 59;

const TYPE_BITS: Readonly<Record<NodeKind, number>> = {
  file: 0o100000,
  folder: 0o040000,
  symlink: 0o120000,
  'character-device': 0o020000,
  'block-device': 0o060000,
  fifo: 0o010000,
};

/** Seconds that an inode can express: from 1901 to 2446. */
const MIN_SECONDS = -(2 ** 31);
const MAX_SECONDS = 2 ** 31 - 1 + 3 * 2 ** 32;

export function clampTime({ seconds, nanoseconds }: Timestamp): Timestamp {
  if (seconds < MIN_SECONDS) return { seconds: MIN_SECONDS, nanoseconds: 0 };
  if (seconds > MAX_SECONDS) return { seconds: MAX_SECONDS, nanoseconds: 0 };
  return { seconds, nanoseconds };
}

export interface InodeContent {
  /** bytes */
  readonly size: number;
  /** the 60 bytes for extents, a short link target or a device number */
  readonly block: Buffer;
  readonly hasExtents: boolean;
  readonly isIndexed: boolean;
  /** all blocks of the file system that belong to this inode */
  readonly ownedBlocks: number;
}

/** Writes one record of the inode table (kernel documentation, "Index Nodes"). `target` is INODE_SIZE zeros. */
export function encodeInode(target: Buffer, node: Node, content: InodeContent, seed: number): void {
  const { mtime } = node;
  const sectors = content.ownedBlocks * 8;
  target.writeUInt16LE(TYPE_BITS[node.kind] | node.mode, 0);
  target.writeUInt16LE(node.uid & 0xffff, 2);
  target.writeUInt32LE(content.size >>> 0, 4);
  for (const at of [8, 12, 16]) target.writeInt32LE(mtime.seconds | 0, at);
  target.writeUInt16LE(node.gid & 0xffff, 24);
  target.writeUInt16LE(node.kind === 'folder' && node.links >= MAX_LINKS ? 1 : node.links, 26);
  target.writeUInt32LE(sectors >>> 0, 28);
  target.writeUInt32LE((content.hasExtents ? FLAG.extents : 0) | (content.isIndexed ? FLAG.index : 0), 32);
  content.block.copy(target, 40);
  target.writeUInt32LE(node.xattrBlock, 104);
  target.writeUInt32LE(Math.floor(content.size / 2 ** 32), 108);
  target.writeUInt16LE(Math.floor(sectors / 2 ** 32), 116);
  target.writeUInt16LE(node.uid >>> 16, 120);
  target.writeUInt16LE(node.gid >>> 16, 122);
  target.writeUInt16LE(EXTRA_SIZE, 128);
  const extra = extraTime(mtime);
  for (const at of [132, 136, 140, 148]) target.writeUInt32LE(extra, at);
  target.writeInt32LE(mtime.seconds | 0, 144);
  if (node.inlineXattrs !== undefined) {
    target.writeUInt32LE(XATTR_MAGIC, 128 + EXTRA_SIZE);
    node.inlineXattrs.copy(target, 128 + EXTRA_SIZE + 4);
  }
  const checksum = crc32c(inodeSeed(seed, node.ino), target.subarray(0, INODE_SIZE));
  target.writeUInt16LE(checksum & 0xffff, 124);
  target.writeUInt16LE(checksum >>> 16, 130);
}

/** Two bits for the years after 2038, then the nanoseconds. */
function extraTime({ seconds, nanoseconds }: Timestamp): number {
  const epoch = Math.round((seconds - (seconds | 0)) / 2 ** 32) & 3;
  return ((nanoseconds << 2) | epoch) >>> 0;
}

/** The device number in the old form where it fits, else in the new one (12 and 20 bits). */
export function encodeDevice(major: number, minor: number): Buffer {
  const block = Buffer.alloc(60);
  if (major < 256 && minor < 256) block.writeUInt32LE((major << 8) | minor, 0);
  else block.writeUInt32LE(((minor & 0xff) | (major << 8) | ((minor & ~0xff) << 12)) >>> 0, 4);
  return block;
}

export function encodeTarget(target: string): Buffer {
  const block = Buffer.alloc(60);
  block.write(target, 'latin1');
  return block;
}
