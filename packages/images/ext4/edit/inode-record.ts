import { crc32c, inodeSeed } from '../format/checksum.ts';
import type { NodeKind, Timestamp } from '../model/node.ts';
import type { BlockEdits } from './block-edits.ts';
import type { DiskGeometry } from './geometry.ts';
import type { Groups } from './groups.ts';

const KINDS: ReadonlyMap<number, NodeKind> = new Map([
  [0o100000, 'file'],
  [0o040000, 'folder'],
  [0o120000, 'symlink'],
  [0o020000, 'character-device'],
  [0o060000, 'block-device'],
  [0o010000, 'fifo'],
]);
const TYPE = 0o170000;
const EXTRA_SIZE = 32;

/** One record of the inode table (kernel documentation, "Index Nodes"), as it is on the disk. */
export class InodeRecord {
  readonly ino: number;
  readonly data: Buffer;

  /** @param data a copy of the record */
  constructor(ino: number, data: Buffer) {
    this.ino = ino;
    this.data = data;
  }

  static fresh(ino: number, inodeSize: number, type: number): InodeRecord {
    const record = new InodeRecord(ino, Buffer.alloc(inodeSize));
    record.data.writeUInt16LE(type, 0);
    record.data.writeUInt16LE(EXTRA_SIZE, 128);
    return record;
  }

  /** undefined for what no image has */
  get kind(): NodeKind | undefined {
    return KINDS.get(this.data.readUInt16LE(0) & TYPE);
  }

  get mode(): number {
    return this.data.readUInt16LE(0) & ~TYPE;
  }

  set mode(mode: number) {
    this.data.writeUInt16LE((this.data.readUInt16LE(0) & TYPE) | mode, 0);
  }

  get uid(): number {
    return this.data.readUInt16LE(2) + this.data.readUInt16LE(120) * 65_536;
  }

  get gid(): number {
    return this.data.readUInt16LE(24) + this.data.readUInt16LE(122) * 65_536;
  }

  setOwner(uid: number, gid: number): void {
    this.data.writeUInt16LE(uid & 0xffff, 2);
    this.data.writeUInt16LE(uid >>> 16, 120);
    this.data.writeUInt16LE(gid & 0xffff, 24);
    this.data.writeUInt16LE(gid >>> 16, 122);
  }

  get size(): number {
    return this.data.readUInt32LE(4) + this.data.readUInt32LE(108) * 2 ** 32;
  }

  set size(bytes: number) {
    this.data.writeUInt32LE(bytes % 2 ** 32, 4);
    this.data.writeUInt32LE(Math.floor(bytes / 2 ** 32), 108);
  }

  get links(): number {
    return this.data.readUInt16LE(26);
  }

  set links(links: number) {
    this.data.writeUInt16LE(links, 26);
  }

  get flags(): number {
    return this.data.readUInt32LE(32);
  }

  set flags(flags: number) {
    this.data.writeUInt32LE(flags >>> 0, 32);
  }

  /** Blocks that belong to it, those of attributes and of the mapping included. */
  get ownedBlocks(): number {
    return this.data.readUInt32LE(28) / 8;
  }

  set ownedBlocks(blocks: number) {
    this.data.writeUInt32LE(blocks * 8, 28);
  }

  /** Root of the extent tree, or a short target: 60 bytes, to be changed in place. */
  get block(): Buffer {
    return this.data.subarray(40, 100);
  }

  get generation(): number {
    return this.data.readUInt32LE(100);
  }

  get mtime(): Timestamp {
    const extra = this.#hasExtra(136) ? this.data.readUInt32LE(136) : 0;
    return { seconds: this.data.readInt32LE(16) + (extra & 3) * 2 ** 32, nanoseconds: extra >>> 2 };
  }

  set mtime({ seconds, nanoseconds }: Timestamp) {
    const epoch = Math.round((seconds - (seconds | 0)) / 2 ** 32) & 3;
    this.data.writeInt32LE(seconds | 0, 16);
    if (this.#hasExtra(136)) this.data.writeUInt32LE(((nanoseconds << 2) | epoch) >>> 0, 136);
  }

  /** Whether the record is long enough to have four bytes at a place behind the classical fields. */
  #hasExtra(at: number): boolean {
    return 128 + this.data.readUInt16LE(128) >= at + 4;
  }
}

/** The inode tables of a file system that somebody else has made. */
export class InodeTable {
  readonly #edits: BlockEdits;
  readonly #groups: Groups;
  readonly #geometry: DiskGeometry;

  constructor(edits: BlockEdits, groups: Groups, geometry: DiskGeometry) {
    this.#edits = edits;
    this.#groups = groups;
    this.#geometry = geometry;
  }

  async read(ino: number): Promise<InodeRecord> {
    const { block, offset } = await this.#groups.placeOf(ino);
    const data = await this.#edits.read(block);
    return new InodeRecord(ino, Buffer.from(data.subarray(offset, offset + this.#geometry.inodeSize)));
  }

  async write({ ino, data, generation }: InodeRecord): Promise<void> {
    if (this.#geometry.checksums === 'crc32c') {
      data.writeUInt16LE(0, 124);
      data.writeUInt16LE(0, 130);
      const checksum = crc32c(inodeSeed(this.#geometry.seed, ino, generation), data);
      data.writeUInt16LE(checksum & 0xffff, 124);
      data.writeUInt16LE(checksum >>> 16, 130);
    }
    const { block, offset } = await this.#groups.placeOf(ino);
    data.copy(await this.#edits.edit(block), offset);
  }
}
