import { BLOCK_SIZE } from '../model/geometry.ts';
import { crc32c } from './checksum.ts';
import { dirHash } from './dir-hash.ts';

/** File types of directory entries. */
export const ENTRY_TYPE = {
  file: 1,
  folder: 2,
  'character-device': 3,
  'block-device': 4,
  fifo: 5,
  symlink: 7,
} as const;

export interface FolderEntry {
  /** 1 to 255 bytes, one a character (latin1) */
  readonly name: string;
  readonly ino: number;
  readonly type: number;
}

export interface FolderFormat {
  readonly ino: number;
  readonly parentIno: number;
  /** checksum seed of the folder's inode */
  readonly checksumSeed: number;
  /** of the superblock, 16 bytes */
  readonly hashSeed: Buffer;
}

const DOTS = 24;
const TAIL = 12;
const LEAF_ROOM = BLOCK_SIZE - TAIL;
/** Leaves of large folders keep some room, so that the guest's first new names split none. */
const LEAF_FILL = Math.floor(LEAF_ROOM * 0.9);
const ROOT_LIMIT = (BLOCK_SIZE - 32) / 8 - 1;
const NODE_LIMIT = (BLOCK_SIZE - 8) / 8 - 1;
const HALF_MD4 = 1;
const FOLDER = ENTRY_TYPE.folder;

/**
 * The blocks of a folder (kernel documentation, "Directory Entries"): one that is searched from its start, or a hash tree
 * with as many as are needed. The same names give the same bytes, whatever their history.
 */
export function encodeFolder(entries: readonly FolderEntry[], format: FolderFormat): Buffer[] {
  const sorted = [...entries].sort((a, b) => compareNames(a.name, b.name));
  const bytes = sorted.reduce((sum, { name }) => sum + sizeOf(name), DOTS);
  if (bytes <= LEAF_ROOM) {
    const block = Buffer.alloc(BLOCK_SIZE);
    writeEntries(block, 0, LEAF_ROOM, [...dots(format), ...sorted]);
    finishLeaf(block, format.checksumSeed);
    return [block];
  }
  return encodeTree(sorted, format);
}

function dots(format: FolderFormat): FolderEntry[] {
  return [
    { name: '.', ino: format.ino, type: FOLDER },
    { name: '..', ino: format.parentIno, type: FOLDER },
  ];
}

interface Indexed {
  readonly hash: number;
  readonly block: number;
}

function encodeTree(sorted: readonly FolderEntry[], format: FolderFormat): Buffer[] {
  const hashed = sorted.map((entry) => ({ entry, hash: dirHash(entry.name, format.hashSeed) }));
  // Names with one hash stay in the order of their bytes: the sort is stable.
  hashed.sort((a, b) => a.hash - b.hash);
  const leaves: Buffer[] = [];
  const index: Indexed[] = [];
  for (let from = 0; from < hashed.length; ) {
    const entries: FolderEntry[] = [];
    let used = 0;
    let to = from;
    for (; to < hashed.length; to++) {
      const entry = hashed[to]?.entry;
      if (entry === undefined || (entries.length > 0 && used + sizeOf(entry.name) > LEAF_FILL)) break;
      entries.push(entry);
      used += sizeOf(entry.name);
    }
    const hash = hashed[from]?.hash ?? 0;
    // The lowest bit says that the leaf before has names of the same hash.
    const continued = from > 0 && hashed[from - 1]?.hash === hash ? 1 : 0;
    index.push({ hash: hash + continued, block: 1 + leaves.length });
    const block = Buffer.alloc(BLOCK_SIZE);
    writeEntries(block, 0, LEAF_ROOM, entries);
    finishLeaf(block, format.checksumSeed);
    leaves.push(block);
    from = to;
  }
  if (index.length <= ROOT_LIMIT) return [encodeRoot(index, 0, format), ...leaves];
  const nodes: Buffer[] = [];
  const above: Indexed[] = [];
  for (let from = 0; from < index.length; from += NODE_LIMIT) {
    const part = index.slice(from, from + NODE_LIMIT);
    above.push({ hash: part[0]?.hash ?? 0, block: 1 + leaves.length + nodes.length });
    nodes.push(encodeNode(part, format));
  }
  // Two levels hold more names than a disk has inodes.
  return [encodeRoot(above, 1, format), ...leaves, ...nodes];
}

function encodeRoot(index: readonly Indexed[], levels: number, format: FolderFormat): Buffer {
  const block = Buffer.alloc(BLOCK_SIZE);
  writeEntries(block, 0, BLOCK_SIZE, dots(format));
  block.writeUInt8(HALF_MD4, DOTS + 4);
  block.writeUInt8(8, DOTS + 5);
  block.writeUInt8(levels, DOTS + 6);
  writeIndex(block, DOTS + 8, ROOT_LIMIT, index, format.checksumSeed);
  return block;
}

function encodeNode(index: readonly Indexed[], format: FolderFormat): Buffer {
  const block = Buffer.alloc(BLOCK_SIZE);
  block.writeUInt16LE(BLOCK_SIZE, 4);
  writeIndex(block, 8, NODE_LIMIT, index, format.checksumSeed);
  return block;
}

/** The first entry has no hash: limit and count stand in its place. Behind the last possible one comes the checksum. */
function writeIndex(block: Buffer, at: number, limit: number, index: readonly Indexed[], seed: number): void {
  for (const [number, { hash, block: target }] of index.entries()) {
    block.writeUInt32LE(hash, at + 8 * number);
    block.writeUInt32LE(target, at + 8 * number + 4);
  }
  block.writeUInt16LE(limit, at);
  block.writeUInt16LE(index.length, at + 2);
  const used = crc32c(seed, block.subarray(0, at + 8 * index.length));
  block.writeUInt32LE(crc32c(used, Buffer.alloc(8)), at + 8 * limit + 4);
}

function finishLeaf(block: Buffer, seed: number): void {
  block.writeUInt16LE(TAIL, LEAF_ROOM + 4);
  block.writeUInt8(0xde, LEAF_ROOM + 7);
  block.writeUInt32LE(crc32c(seed, block.subarray(0, LEAF_ROOM)), LEAF_ROOM + 8);
}

/** Entries one behind the other; the last one reaches to `end`. */
function writeEntries(block: Buffer, start: number, end: number, entries: readonly FolderEntry[]): void {
  let at = start;
  for (const [number, { name, ino, type }] of entries.entries()) {
    const length = number === entries.length - 1 ? end - at : sizeOf(name);
    block.writeUInt32LE(ino, at);
    block.writeUInt16LE(length, at + 4);
    block.writeUInt8(name.length, at + 6);
    block.writeUInt8(type, at + 7);
    block.write(name, at + 8, 'latin1');
    at += length;
  }
}

function sizeOf(name: string): number {
  return 8 + ((name.length + 3) & ~3);
}

/** By bytes; code units are bytes here. */
function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
