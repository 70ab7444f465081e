import { BLOCK_SIZE } from '../model/geometry.ts';
import type { Extent } from '../model/node.ts';
import { crc32c } from './checksum.ts';

const MAGIC = 0xf30a;
const ENTRY = 12;
const ROOT_ENTRIES = 4;
/** A block has a header, entries and four bytes of checksum. */
const BLOCK_ENTRIES = Math.floor((BLOCK_SIZE - ENTRY - 4) / ENTRY);
/** longest run of an initialised extent */
const MAX_EXTENT = 32768;

/** Blocks that the tree of this many extents needs outside the inode. */
export function treeBlocksFor(extents: number): number {
  let total = 0;
  for (let level = extents; level > ROOT_ENTRIES; ) {
    level = Math.ceil(level / BLOCK_ENTRIES);
    total += level;
  }
  return total;
}

export interface ExtentTree {
  /** 60 bytes for the inode */
  readonly root: Buffer;
  /** as many as `treeBlocksFor` said, in the order of the block numbers that were given */
  readonly blocks: readonly Buffer[];
}

/**
 * Lays out extents as ext4's tree (kernel documentation, "Extent Tree").
 * @param extents sorted, without overlaps
 * @param blockNumbers where the tree's own blocks will stand
 * @param seed checksum of the inode's number and generation
 */
export function encodeExtents(extents: readonly Extent[], blockNumbers: readonly number[], seed: number): ExtentTree {
  const blocks: Buffer[] = [];
  let depth = 0;
  let level: readonly Child[] = extents.map((extent) => ({ logical: extent.logical, extent }));
  while (level.length > ROOT_ENTRIES) {
    const above: Child[] = [];
    for (let from = 0; from < level.length; from += BLOCK_ENTRIES) {
      const part = level.slice(from, from + BLOCK_ENTRIES);
      const block = Buffer.alloc(BLOCK_SIZE);
      writeNode(block, part, depth, BLOCK_ENTRIES);
      const end = ENTRY * (1 + BLOCK_ENTRIES);
      block.writeUInt32LE(crc32c(seed, block.subarray(0, end)), end);
      above.push({ logical: part[0]?.logical ?? 0, block: blockNumbers[blocks.length] ?? 0 });
      blocks.push(block);
    }
    level = above;
    depth++;
  }
  const root = Buffer.alloc(60);
  writeNode(root, level, depth, ROOT_ENTRIES);
  return { root, blocks };
}

type Child =
  | { readonly logical: number; readonly extent: Extent }
  | { readonly logical: number; readonly block: number };

function writeNode(target: Buffer, children: readonly Child[], depth: number, max: number): void {
  target.writeUInt16LE(MAGIC, 0);
  target.writeUInt16LE(children.length, 2);
  target.writeUInt16LE(max, 4);
  target.writeUInt16LE(depth, 6);
  for (const [index, child] of children.entries()) {
    const at = ENTRY * (1 + index);
    target.writeUInt32LE(child.logical, at);
    if ('extent' in child) {
      target.writeUInt16LE(child.extent.count, at + 4);
      target.writeUInt32LE(child.extent.physical, at + 8);
    } else {
      target.writeUInt32LE(child.block, at + 4);
    }
  }
}

/** Adds blocks at the end of a file, as part of the last extent where they follow it. */
export function appendExtent(extents: Extent[], added: Extent): void {
  const last = extents.at(-1);
  const follows =
    last !== undefined &&
    last.logical + last.count === added.logical &&
    last.physical + last.count === added.physical &&
    last.count + added.count <= MAX_EXTENT;
  if (follows) extents[extents.length - 1] = { ...last, count: last.count + added.count };
  else extents.push(added);
}
