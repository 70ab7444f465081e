import { crc32c, inodeSeed } from '../format/checksum.ts';
import { appendExtent } from '../format/extent-tree.ts';
import { BLOCK_SIZE } from '../model/geometry.ts';
import type { Extent } from '../model/node.ts';
import type { BlockEdits } from './block-edits.ts';
import { type DiskGeometry, invalid } from './geometry.ts';
import type { Groups } from './groups.ts';
import type { InodeRecord, InodeTable } from './inode-record.ts';
import { MAX_ROOT_EXTENTS, readMapping, writeMapping } from './mapping.ts';

const INDEX_FLAG = 0x1000;
const TAIL = 12;
const HEAD = 8;
const DOTS = 24;
const FOLDER = 2;
const MAX_FOLDER_BLOCKS = 8192;
const MAX_ENTRIES = 200_000;

export interface DiskEntry {
  /** one byte a character (latin1) */
  readonly name: string;
  readonly ino: number;
}

/** Folders of a file system that somebody else has made (kernel documentation, "Directory Entries"). */
export class FolderBlocks {
  readonly #edits: BlockEdits;
  readonly #groups: Groups;
  readonly #inodes: InodeTable;
  readonly #geometry: DiskGeometry;

  constructor(edits: BlockEdits, groups: Groups, inodes: InodeTable, geometry: DiskGeometry) {
    this.#edits = edits;
    this.#groups = groups;
    this.#inodes = inodes;
    this.#geometry = geometry;
  }

  /**
   * All entries, `.` and `..` too. Inner blocks of a hash tree look like unused entries.
   * @throws AenvError `image_invalid`, also for more than are believed
   */
  async entries(folder: InodeRecord): Promise<readonly DiskEntry[]> {
    const found: DiskEntry[] = [];
    for (const block of await this.#blocksOf(folder)) {
      const data = await this.#edits.read(block);
      for (const { at, ino, nameLength } of records(data)) {
        if (ino !== 0) found.push({ name: data.toString('latin1', at + HEAD, at + HEAD + nameLength), ino });
      }
      if (found.length > MAX_ENTRIES) throw invalid('a folder of its ext4 has too many entries');
    }
    return found;
  }

  /** The inode that a name means. */
  async find(folder: InodeRecord, name: string): Promise<number | undefined> {
    const bytes = Buffer.from(name, 'latin1');
    for (const block of await this.#blocksOf(folder)) {
      const data = await this.#edits.read(block);
      for (const record of records(data)) if (isNamed(data, record, bytes)) return record.ino;
    }
    return undefined;
  }

  /** The first block of a new folder. */
  async create(folder: InodeRecord, parentIno: number): Promise<void> {
    const block = await this.#groups.takeBlocks(1);
    const data = Buffer.alloc(BLOCK_SIZE);
    writeEntry(data, 0, 12, { name: '.', ino: folder.ino }, FOLDER);
    writeEntry(data, 12, this.#room - 12, { name: '..', ino: parentIno }, FOLDER);
    this.#finish(folder, block, data);
    folder.size = BLOCK_SIZE;
    folder.ownedBlocks = 1;
    writeMapping(folder, [{ logical: 0, physical: block, count: 1 }]);
  }

  /**
   * Adds a name that is not there. A folder with a hash tree is searched from its start from now on: its blocks of names
   * stay as they are.
   * @param type of `ENTRY_TYPE`
   */
  async add(folder: InodeRecord, entry: DiskEntry, type: number): Promise<void> {
    const blocks = await this.#blocksOf(folder);
    if ((folder.flags & INDEX_FLAG) !== 0) await this.#dropIndex(folder, blocks);
    const needed = sizeOf(entry.name.length);
    for (const block of blocks) {
      const data = await this.#edits.read(block);
      if (this.#room < BLOCK_SIZE && data.readUInt8(this.#room + 7) !== 0xde) throw damaged();
      for (const { at, ino, length, nameLength } of records(data)) {
        if (at >= this.#room) continue;
        const used = ino === 0 ? 0 : sizeOf(nameLength);
        if (length - used < needed) continue;
        const target = await this.#edits.edit(block);
        if (ino !== 0) target.writeUInt16LE(used, at + 4);
        writeEntry(target, at + used, length - used, entry, type);
        this.#finish(folder, block, target);
        return;
      }
    }
    await this.#append(folder, blocks, entry, type);
  }

  /** Makes a name mean another inode. */
  async replace(folder: InodeRecord, { name, ino }: DiskEntry): Promise<void> {
    const bytes = Buffer.from(name, 'latin1');
    for (const block of await this.#blocksOf(folder)) {
      const data = await this.#edits.read(block);
      for (const record of records(data)) {
        if (!isNamed(data, record, bytes)) continue;
        const target = await this.#edits.edit(block);
        target.writeUInt32LE(ino, record.at);
        // With a hash tree this is one of its leaves: they look the same.
        this.#finish(folder, block, target);
        return;
      }
    }
  }

  get #room(): number {
    return this.#geometry.checksums === 'crc32c' ? BLOCK_SIZE - TAIL : BLOCK_SIZE;
  }

  async #append(folder: InodeRecord, blocks: readonly number[], entry: DiskEntry, type: number): Promise<void> {
    const { extents, treeBlocks } = await readMapping(this.#edits, folder, MAX_FOLDER_BLOCKS);
    const all: Extent[] = extents.map(({ logical, physical, count }) => ({ logical, physical, count }));
    const last = all.at(-1);
    let block = await this.#groups.takeBlocks(1, last && last.physical + last.count);
    appendExtent(all, { logical: blocks.length, physical: block, count: 1 });
    if (all.length > MAX_ROOT_EXTENTS) {
      await this.#groups.giveBlocks(block, 1);
      const physical = await this.#move(blocks);
      all.splice(0, all.length, { logical: 0, physical, count: blocks.length + 1 });
      block = physical + blocks.length;
    }
    const data = Buffer.alloc(BLOCK_SIZE);
    writeEntry(data, 0, this.#room, entry, type);
    this.#finish(folder, block, data);
    for (const inner of treeBlocks) await this.#groups.giveBlocks(inner, 1);
    writeMapping(folder, all);
    folder.size += BLOCK_SIZE;
    folder.ownedBlocks += 1 - treeBlocks.length;
    await this.#inodes.write(folder);
  }

  /** Copies blocks to where there is room for them, and for one more, in a row. @returns the first */
  async #move(blocks: readonly number[]): Promise<number> {
    const first = await this.#groups.takeBlocks(blocks.length + 1);
    for (const [at, block] of blocks.entries()) {
      this.#edits.replace(first + at, Buffer.from(await this.#edits.read(block)));
      await this.#groups.giveBlocks(block, 1);
    }
    return first;
  }

  /** Checksummed blocks of the tree itself have no room for that of a block of names: they are made anew, empty. */
  async #dropIndex(folder: InodeRecord, blocks: readonly number[]): Promise<void> {
    folder.flags &= ~INDEX_FLAG;
    await this.#inodes.write(folder);
    if (this.#geometry.checksums !== 'crc32c') return;
    for (const [at, block] of blocks.entries()) {
      const data = await this.#edits.read(block);
      const isNode = at > 0 && data.readUInt32LE(0) === 0 && data.readUInt16LE(4) === BLOCK_SIZE;
      if (at > 0 && !isNode) continue;
      const target = await this.#edits.edit(block);
      target.fill(0, at === 0 ? DOTS : 0);
      target.writeUInt16LE(this.#room - (at === 0 ? 12 : 0), at === 0 ? 16 : 4);
      this.#finish(folder, block, target);
    }
  }

  #finish({ ino, generation }: InodeRecord, block: number, data: Buffer): void {
    if (this.#geometry.checksums === 'crc32c') {
      data.fill(0, this.#room);
      data.writeUInt16LE(TAIL, this.#room + 4);
      data.writeUInt8(0xde, this.#room + 7);
      const seed = inodeSeed(this.#geometry.seed, ino, generation);
      data.writeUInt32LE(crc32c(seed, data.subarray(0, this.#room)), this.#room + 8);
    }
    this.#edits.replace(block, data);
  }

  async #blocksOf(folder: InodeRecord): Promise<number[]> {
    const count = folder.size / BLOCK_SIZE;
    if (!Number.isInteger(count) || count < 1 || count > MAX_FOLDER_BLOCKS) throw damaged();
    const { extents } = await readMapping(this.#edits, folder, MAX_FOLDER_BLOCKS);
    const blocks: number[] = [];
    for (const extent of extents) {
      if (!extent.isWritten || extent.logical !== blocks.length) throw damaged();
      for (let at = 0; at < extent.count && blocks.length < count; at++) blocks.push(extent.physical + at);
    }
    if (blocks.length !== count) throw damaged();
    return blocks;
  }
}

interface Record {
  readonly at: number;
  readonly ino: number;
  readonly length: number;
  readonly nameLength: number;
}

function* records(data: Buffer): Generator<Record> {
  for (let at = 0; at < BLOCK_SIZE; ) {
    const length = data.readUInt16LE(at + 4);
    const nameLength = data.readUInt8(at + 6);
    const ino = data.readUInt32LE(at);
    const fits = length >= HEAD && length % 4 === 0 && at + length <= BLOCK_SIZE;
    if (!fits || (ino !== 0 && HEAD + nameLength > length)) throw damaged();
    yield { at, ino, length, nameLength };
    at += length;
  }
}

function isNamed(data: Buffer, { at, ino, nameLength }: Record, name: Buffer): boolean {
  if (ino === 0 || nameLength !== name.length) return false;
  return data.compare(name, 0, name.length, at + HEAD, at + HEAD + nameLength) === 0;
}

function writeEntry(data: Buffer, at: number, length: number, { name, ino }: DiskEntry, type: number): void {
  data.writeUInt32LE(ino, at);
  data.writeUInt16LE(length, at + 4);
  data.writeUInt8(name.length, at + 6);
  data.writeUInt8(type, at + 7);
  data.write(name, at + HEAD, 'latin1');
}

function sizeOf(nameLength: number): number {
  return HEAD + ((nameLength + 3) & ~3);
}

function damaged() {
  return invalid('a folder of its ext4 is damaged');
}
