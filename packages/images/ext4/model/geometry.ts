import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

export const BLOCK_SIZE = 4096;
export const BLOCKS_PER_GROUP = 8 * BLOCK_SIZE;
/** one inode for 16 KiB of disk, as mke2fs(8) has it */
export const INODES_PER_GROUP = 8192;
export const INODE_SIZE = 256;
export const INODES_PER_BLOCK = BLOCK_SIZE / INODE_SIZE;
export const DESCRIPTOR_SIZE = 32;
const TABLE_BLOCKS = INODES_PER_GROUP / INODES_PER_BLOCK;

const MIN_BYTES = 16 * 2 ** 20;
const MAX_BYTES = 2 * 2 ** 40;

export const INO = { root: 2, journal: 8, lostAndFound: 11 } as const;

/**
 * Where things are in a file system of one size; all positions and lengths in blocks. All bitmaps and inode tables stand
 * at the front (one flex group), then the journal, then one area of data to the end: what is not used is never written.
 */
export interface Geometry {
  readonly sizeBytes: number;
  readonly blockCount: number;
  readonly groupCount: number;
  readonly inodeCount: number;
  readonly descriptorBlocks: number;
  /** first of `groupCount` blocks */
  readonly blockBitmaps: number;
  /** first of `groupCount` blocks */
  readonly inodeBitmaps: number;
  /** all inode tables, one behind the other, so that inode n is at `(n - 1) * INODE_SIZE` */
  readonly inodeTables: number;
  readonly journal: number;
  readonly journalBlocks: number;
  readonly firstData: number;
}

/**
 * @param sizeBytes a multiple of 4096, from 16 MiB to 2 TiB
 * @throws AenvError `invalid_request`
 */
export function geometryOf(sizeBytes: number): Geometry {
  if (!(sizeBytes >= MIN_BYTES && sizeBytes <= MAX_BYTES) || sizeBytes % BLOCK_SIZE !== 0) {
    throw new AenvError('invalid_request', `a disk of ${sizeBytes} bytes cannot be made`, {
      remediation: 'Choose a size from 16 MiB to 2 TiB, in multiples of 4 KiB.',
    });
  }
  const blockCount = sizeBytes / BLOCK_SIZE;
  const groupCount = Math.ceil(blockCount / BLOCKS_PER_GROUP);
  const descriptorBlocks = Math.ceil((groupCount * DESCRIPTOR_SIZE) / BLOCK_SIZE);
  const blockBitmaps = 1 + descriptorBlocks;
  const inodeBitmaps = blockBitmaps + groupCount;
  const inodeTables = inodeBitmaps + groupCount;
  const journal = inodeTables + groupCount * TABLE_BLOCKS;
  // 16 MiB hold any transaction of one sandbox; a larger journal only makes every overlay larger.
  const journalBlocks = blockCount < BLOCKS_PER_GROUP ? 1024 : 4096;
  return {
    sizeBytes,
    blockCount,
    groupCount,
    inodeCount: groupCount * INODES_PER_GROUP,
    descriptorBlocks,
    blockBitmaps,
    inodeBitmaps,
    inodeTables,
    journal,
    journalBlocks,
    firstData: journal + journalBlocks,
  };
}

export const TABLE_BLOCKS_PER_GROUP = TABLE_BLOCKS;
