import { encodeExtents } from '../format/extent-tree.ts';
import type { Extent } from '../model/node.ts';
import type { BlockEdits } from './block-edits.ts';
import { invalid } from './geometry.ts';
import type { InodeRecord } from './inode-record.ts';

export const EXTENTS_FLAG = 0x80000;
const MAGIC = 0xf30a;
const ENTRY = 12;
const MAX_DEPTH = 5;
/** Longer runs are blocks that were reserved, and read as zeros. */
const MAX_WRITTEN = 32_768;

/** Where the content of an inode is. */
export interface Mapping {
  /** sorted; those that were reserved only have no content */
  readonly extents: readonly (Extent & { readonly isWritten: boolean })[];
  /** blocks of the tree itself */
  readonly treeBlocks: readonly number[];
}

/**
 * Reads an inode's extent tree (kernel documentation, "Extent Tree").
 * @param maxExtents more than this many are taken for damage
 * @throws AenvError `image_invalid`
 */
export async function readMapping(edits: BlockEdits, inode: InodeRecord, maxExtents: number): Promise<Mapping> {
  if ((inode.flags & EXTENTS_FLAG) === 0) {
    if (inode.size === 0) return { extents: [], treeBlocks: [] };
    throw invalid('a file of its ext4 has no extents');
  }
  const extents: (Extent & { isWritten: boolean })[] = [];
  const treeBlocks: number[] = [];
  const walk = async (node: Buffer, depth: number): Promise<void> => {
    const count = node.readUInt16LE(2);
    const isWhole = node.readUInt16LE(0) === MAGIC && ENTRY * (1 + count) <= node.length;
    if (!isWhole || node.readUInt16LE(6) !== depth) throw invalid('the extents of a file of its ext4 are damaged');
    for (let at = ENTRY; at < ENTRY * (1 + count); at += ENTRY) {
      if (extents.length + treeBlocks.length >= maxExtents) throw invalid('a file of its ext4 is too fragmented');
      const logical = node.readUInt32LE(at);
      if (depth === 0) {
        const length = node.readUInt16LE(at + 4);
        const physical = node.readUInt32LE(at + 8) + node.readUInt16LE(at + 6) * 2 ** 32;
        const isWritten = length <= MAX_WRITTEN;
        extents.push({ logical, physical, count: isWritten ? length : length - MAX_WRITTEN, isWritten });
      } else {
        const block = node.readUInt32LE(at + 4) + node.readUInt16LE(at + 8) * 2 ** 32;
        treeBlocks.push(block);
        await walk(await edits.read(block), depth - 1);
      }
    }
  };
  const depth = inode.block.readUInt16LE(6);
  if (depth > MAX_DEPTH) throw invalid('the extents of a file of its ext4 are damaged');
  await walk(inode.block, depth);
  return { extents, treeBlocks };
}

/**
 * Makes an inode's mapping a tree that stands in the inode.
 * @param extents at most four
 */
export function writeMapping(inode: InodeRecord, extents: readonly Extent[]): void {
  for (const { physical } of extents) if (physical >= 2 ** 32) throw invalid('its disk is larger than 16 TiB');
  encodeExtents(extents, [], 0).root.copy(inode.block);
  inode.flags |= EXTENTS_FLAG;
}

export const MAX_ROOT_EXTENTS = 4;
