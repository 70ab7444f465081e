import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { crc32c, fileSystemSeed, START } from '../format/checksum.ts';
import { BLOCK_SIZE } from '../model/geometry.ts';

/** Of a file system that somebody else has made: what its other structures are read by. */
export interface DiskGeometry {
  readonly blockCount: number;
  readonly blocksPerGroup: number;
  readonly inodeCount: number;
  readonly inodesPerGroup: number;
  readonly groupCount: number;
  readonly firstInode: number;
  readonly inodeSize: number;
  readonly descriptorSize: number;
  /** `crc32c`: of everything; `crc16`: of group descriptors; undefined: there are none */
  readonly checksums: 'crc32c' | 'crc16' | undefined;
  /** what checksums begin with */
  readonly seed: number;
  readonly uuid: Buffer;
  /** blocks of the copies of superblock and descriptors, in groups that have them */
  readonly copyBlocks: number;
  hasCopies(group: number): boolean;
}

/** Offset of the superblock in block 0. */
export const SUPERBLOCK = 1024;

const RO_COMPAT = { sparseSuper: 0x1, groupChecksum: 0x10, metadataCsum: 0x400 } as const;
const COMPAT = { sparseSuper2: 0x200 } as const;
const INCOMPAT = { extents: 0x40, is64Bit: 0x80, checksumSeed: 0x2000 } as const;
/** filetype, extents, 64bit, flex_bg, ea_inode, metadata_csum_seed: what changes nothing that is done here. */
const KNOWN_INCOMPAT = 0x2 | 0x40 | 0x80 | 0x200 | 0x400 | 0x2000;
/** sparse_super, large_file, btree_dir, huge_file, uninit_bg, dir_nlink, extra_isize, metadata_csum, verity. */
const KNOWN_RO_COMPAT = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x400 | 0x8000;
const MAX_GROUPS = 2 ** 17;

/**
 * Reads the superblock (kernel documentation, "Super Block").
 * @param block the first block of the disk
 * @param sizeBytes of the disk
 * @throws AenvError `image_invalid` for what is no ext4, is damaged, or has features that changes here would break
 */
export function readGeometry(block: Buffer, sizeBytes: number): DiskGeometry {
  const sb = block.subarray(SUPERBLOCK, 2 * SUPERBLOCK);
  const u32 = (at: number) => sb.readUInt32LE(at);
  const u16 = (at: number) => sb.readUInt16LE(at);
  if (u16(56) !== 0xef53) throw invalid('it has no ext4');
  const [compat, incompat, roCompat] = [u32(92), u32(96), u32(100)];
  if (
    (incompat & ~KNOWN_INCOMPAT) !== 0 ||
    (roCompat & ~KNOWN_RO_COMPAT) !== 0 ||
    (incompat & INCOMPAT.extents) === 0
  ) {
    const features = [compat, incompat, roCompat].map((bits) => `0x${bits.toString(16)}`).join(' ');
    throw invalid(`its ext4 has features that are not supported here, or a journal to be replayed (${features})`);
  }
  if (u32(24) !== 2 || u32(20) !== 0) throw invalid('its ext4 has blocks of another size than 4096 bytes');
  const is64 = (incompat & INCOMPAT.is64Bit) !== 0;
  const blockCount = u32(4) + (is64 ? u32(336) * 2 ** 32 : 0);
  const [blocksPerGroup, inodesPerGroup, inodeCount, inodeSize] = [u32(32), u32(40), u32(0), u16(88)];
  const groupCount = Math.ceil(blockCount / blocksPerGroup);
  const descriptorSize = is64 ? u16(254) : 32;
  const fits =
    blockCount * BLOCK_SIZE <= sizeBytes &&
    blocksPerGroup > 0 &&
    blocksPerGroup <= 8 * BLOCK_SIZE &&
    inodesPerGroup > 0 &&
    inodesPerGroup <= 8 * BLOCK_SIZE &&
    groupCount > 0 &&
    groupCount <= MAX_GROUPS &&
    inodeCount === groupCount * inodesPerGroup &&
    (inodeSize === 256 || inodeSize === 512 || inodeSize === 1024) &&
    (descriptorSize === 32 || descriptorSize === 64);
  if (!fits) throw invalid('the superblock of its ext4 is damaged, or of an unusual kind');
  const metadataCsum = (roCompat & RO_COMPAT.metadataCsum) !== 0;
  if (metadataCsum && u32(1020) !== crc32c(START, sb.subarray(0, 1020))) {
    throw invalid('the superblock of its ext4 has a wrong checksum');
  }
  const uuid = Buffer.from(sb.subarray(104, 120));
  const checksum16 = (roCompat & RO_COMPAT.groupChecksum) !== 0 ? 'crc16' : undefined;
  return {
    ...{ blockCount, blocksPerGroup, inodeCount, inodesPerGroup, groupCount, inodeSize, descriptorSize, uuid },
    firstInode: u32(84),
    checksums: metadataCsum ? 'crc32c' : checksum16,
    seed: (incompat & INCOMPAT.checksumSeed) !== 0 ? u32(624) : fileSystemSeed(uuid),
    copyBlocks: 1 + Math.ceil((groupCount * descriptorSize) / BLOCK_SIZE) + u16(206),
    hasCopies: copyRule(compat, roCompat, [u32(588), u32(592)]),
  };
}

/** Which groups begin with a copy of the superblock and of the descriptors. */
function copyRule(compat: number, roCompat: number, copies: readonly number[]): (group: number) => boolean {
  if ((compat & COMPAT.sparseSuper2) !== 0) return (group) => group === 0 || copies.includes(group);
  if ((roCompat & RO_COMPAT.sparseSuper) === 0) return () => true;
  return (group) => group <= 1 || [3, 5, 7].some((base) => isPower(group, base));
}

function isPower(value: number, base: number): boolean {
  let power = base;
  while (power < value) power *= base;
  return power === value;
}

export function invalid(what: string): AenvError {
  return new AenvError('image_invalid', `the image is block layers, and ${what}`, {
    remediation: 'Convert the image to overlaybd anew, or use the original one.',
  });
}
