import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { crc32c, groupSeed, START } from '../format/checksum.ts';
import { crc16 } from '../format/crc16.ts';
import { withLabel } from '../format/label.ts';
import { BLOCK_SIZE } from '../model/geometry.ts';
import { emptyBitmap, findFree, findRun } from './bitmap.ts';
import type { BlockEdits } from './block-edits.ts';
import { type DiskGeometry, invalid, SUPERBLOCK } from './geometry.ts';

const FLAG = { inodesUninitialised: 1, blocksUninitialised: 2 } as const;
/** Offsets of a count's low and high half in a group descriptor, and of a bitmap's checksum. */
const FIELD = {
  freeBlocks: [12, 44],
  freeInodes: [14, 46],
  folders: [16, 48],
  unusedInodes: [28, 50],
  blockChecksum: [24, 56],
  inodeChecksum: [26, 58],
} as const;
type Field = (typeof FIELD)[keyof typeof FIELD];

/** Bitmaps and counts of a file system that somebody else has made: takes and gives back blocks and inodes. */
export class Groups {
  readonly #edits: BlockEdits;
  readonly #geometry: DiskGeometry;

  constructor(edits: BlockEdits, geometry: DiskGeometry) {
    this.#edits = edits;
    this.#geometry = geometry;
  }

  /** Block and offset of an inode. */
  async placeOf(ino: number): Promise<{ readonly block: number; readonly offset: number }> {
    const { inodesPerGroup, inodeSize, inodeCount } = this.#geometry;
    if (ino < 1 || ino > inodeCount) throw invalid('its ext4 has an entry that is none');
    const group = Math.floor((ino - 1) / inodesPerGroup);
    const at = ((ino - 1) % inodesPerGroup) * inodeSize;
    const descriptor = await this.#read(group);
    return { block: this.#pointer(descriptor, 8, 40) + Math.floor(at / BLOCK_SIZE), offset: at % BLOCK_SIZE };
  }

  /**
   * Takes blocks that lie in a row.
   * @param near where they should begin, if it is free
   * @returns the first
   * @throws AenvError `image_invalid` when there are none
   */
  async takeBlocks(count: number, near?: number): Promise<number> {
    const { groupCount, blocksPerGroup, blockCount } = this.#geometry;
    if (near !== undefined && near < blockCount) {
      const [group, at] = [Math.floor(near / blocksPerGroup), near % blocksPerGroup];
      const bitmap = await this.#blockBitmap(group);
      if (bitmap !== undefined && findRun(bitmap, Math.min(blocksPerGroup, at + count), count, at) === at) {
        await this.#mark(group, bitmap, at, count, true);
        return near;
      }
    }
    for (let group = 0; group < groupCount; group++) {
      if (this.#count(await this.#read(group), FIELD.freeBlocks) < count) continue;
      const bitmap = await this.#blockBitmap(group);
      const first = bitmap === undefined ? undefined : findRun(bitmap, blocksPerGroup, count);
      if (bitmap === undefined || first === undefined) continue;
      await this.#mark(group, bitmap, first, count, true);
      return group * blocksPerGroup + first;
    }
    throw new AenvError('image_invalid', `the image is block layers without room for ${count} blocks in a row`);
  }

  async giveBlocks(first: number, count: number): Promise<void> {
    const { blocksPerGroup } = this.#geometry;
    for (let done = 0; done < count; ) {
      const group = Math.floor((first + done) / blocksPerGroup);
      const at = (first + done) % blocksPerGroup;
      const part = Math.min(count - done, blocksPerGroup - at);
      const bitmap = await this.#blockBitmap(group);
      if (bitmap === undefined) throw invalid('its ext4 has blocks in use that its bitmaps call free');
      await this.#mark(group, bitmap, at, part, false);
      done += part;
    }
  }

  /** Takes an inode. @throws AenvError `image_invalid` when there is none */
  async takeInode(isFolder: boolean): Promise<number> {
    const { groupCount, inodesPerGroup, firstInode, checksums } = this.#geometry;
    for (let group = 0; group < groupCount; group++) {
      const before = await this.#read(group);
      if (this.#count(before, FIELD.freeInodes) === 0) continue;
      const fresh = (before.readUInt16LE(18) & FLAG.inodesUninitialised) !== 0;
      const block = this.#pointer(before, 4, 36);
      const bitmap = fresh ? emptyBitmap(inodesPerGroup) : await this.#edits.edit(block);
      const index = findFree(bitmap, inodesPerGroup, group === 0 ? firstInode - 1 : 0);
      if (index === undefined) continue;
      bitmap[index >> 3] = (bitmap[index >> 3] ?? 0) | (1 << (index & 7));
      this.#edits.replace(block, bitmap);
      await this.#edit(group, (descriptor) => {
        descriptor.writeUInt16LE(descriptor.readUInt16LE(18) & ~FLAG.inodesUninitialised, 18);
        this.#add(descriptor, FIELD.freeInodes, -1);
        if (isFolder) this.#add(descriptor, FIELD.folders, 1);
        const unused = this.#count(descriptor, FIELD.unusedInodes);
        if (checksums !== undefined && index >= inodesPerGroup - unused) {
          this.#set(descriptor, FIELD.unusedInodes, inodesPerGroup - index - 1);
        }
        this.#checksum(descriptor, FIELD.inodeChecksum, bitmap.subarray(0, inodesPerGroup / 8));
      });
      await this.#superblock((sb) => sb.writeUInt32LE(counted(sb.readUInt32LE(16) - 1), 16));
      return group * inodesPerGroup + index + 1;
    }
    throw new AenvError('image_invalid', 'the image is block layers without a free inode');
  }

  /** Names the file system. */
  async setLabel(label: string): Promise<void> {
    await this.#superblock((sb) => withLabel(sb, label)?.copy(sb));
  }

  async #mark(group: number, bitmap: Buffer, first: number, count: number, inUse: boolean): Promise<void> {
    for (let bit = first; bit < first + count; bit++) {
      const byte = bitmap[bit >> 3] ?? 0;
      if (((byte >> (bit & 7)) & 1) === Number(inUse)) throw invalid('the bitmaps of its ext4 are damaged');
      bitmap[bit >> 3] = byte ^ (1 << (bit & 7));
    }
    const change = inUse ? -count : count;
    this.#edits.replace(this.#pointer(await this.#read(group), 0, 32), bitmap);
    await this.#edit(group, (descriptor) => {
      descriptor.writeUInt16LE(descriptor.readUInt16LE(18) & ~FLAG.blocksUninitialised, 18);
      this.#add(descriptor, FIELD.freeBlocks, change);
      this.#checksum(descriptor, FIELD.blockChecksum, bitmap.subarray(0, this.#geometry.blocksPerGroup / 8));
    });
    await this.#superblock((sb) => {
      const free = counted(sb.readUInt32LE(12) + sb.readUInt32LE(344) * 2 ** 32 + change);
      sb.writeUInt32LE(free % 2 ** 32, 12);
      sb.writeUInt32LE(Math.floor(free / 2 ** 32), 344);
    });
  }

  /**
   * The bitmap of a group, to be changed; where it is not on the disk, what it stands for.
   * @returns undefined for a group that is not as simple as its descriptor says
   */
  async #blockBitmap(group: number): Promise<Buffer | undefined> {
    const { blockCount, blocksPerGroup, hasCopies, copyBlocks, inodesPerGroup, inodeSize } = this.#geometry;
    const descriptor = await this.#read(group);
    if ((descriptor.readUInt16LE(18) & FLAG.blocksUninitialised) === 0) {
      return Buffer.from(await this.#edits.read(this.#pointer(descriptor, 0, 32)));
    }
    const start = group * blocksPerGroup;
    const end = Math.min(blocksPerGroup, blockCount - start);
    const bitmap = emptyBitmap(end);
    const use = (first: number, count: number) => {
      for (let at = Math.max(0, first); at < Math.min(end, first + count); at++) {
        bitmap[at >> 3] = (bitmap[at >> 3] ?? 0) | (1 << (at & 7));
      }
    };
    if (hasCopies(group)) use(0, copyBlocks);
    use(this.#pointer(descriptor, 0, 32) - start, 1);
    use(this.#pointer(descriptor, 4, 36) - start, 1);
    use(this.#pointer(descriptor, 8, 40) - start, Math.ceil((inodesPerGroup * inodeSize) / BLOCK_SIZE));
    let free = 0;
    for (let at = 0; at < end; at++) free += ((bitmap[at >> 3] ?? 0) >> (at & 7)) & 1 ? 0 : 1;
    return free === this.#count(descriptor, FIELD.freeBlocks) ? bitmap : undefined;
  }

  async #read(group: number): Promise<Buffer> {
    const { block, offset } = this.#descriptorPlace(group);
    return (await this.#edits.read(block)).subarray(offset, offset + this.#geometry.descriptorSize);
  }

  async #edit(group: number, change: (descriptor: Buffer) => void): Promise<void> {
    const { checksums, seed, uuid, descriptorSize } = this.#geometry;
    const { block, offset } = this.#descriptorPlace(group);
    const descriptor = (await this.#edits.edit(block)).subarray(offset, offset + descriptorSize);
    change(descriptor);
    if (checksums === undefined) return;
    descriptor.writeUInt16LE(0, 30);
    const number = Buffer.alloc(4);
    number.writeUInt32LE(group);
    const checksum =
      checksums === 'crc32c'
        ? crc32c(groupSeed(seed, group), descriptor)
        : crc16(0xffff, uuid, number, descriptor.subarray(0, 30), descriptor.subarray(32));
    descriptor.writeUInt16LE(checksum & 0xffff, 30);
  }

  async #superblock(change: (superblock: Buffer) => void): Promise<void> {
    const sb = (await this.#edits.edit(0)).subarray(SUPERBLOCK, 2 * SUPERBLOCK);
    change(sb);
    if (this.#geometry.checksums === 'crc32c') sb.writeUInt32LE(crc32c(START, sb.subarray(0, 1020)), 1020);
  }

  #descriptorPlace(group: number) {
    const at = group * this.#geometry.descriptorSize;
    return { block: 1 + Math.floor(at / BLOCK_SIZE), offset: at % BLOCK_SIZE };
  }

  get #isLong(): boolean {
    return this.#geometry.descriptorSize >= 64;
  }

  #pointer(descriptor: Buffer, low: number, high: number): number {
    return descriptor.readUInt32LE(low) + (this.#isLong ? descriptor.readUInt32LE(high) * 2 ** 32 : 0);
  }

  #count(descriptor: Buffer, [low, high]: Field): number {
    return descriptor.readUInt16LE(low) + (this.#isLong ? descriptor.readUInt16LE(high) * 65_536 : 0);
  }

  #set(descriptor: Buffer, [low, high]: Field, value: number): void {
    descriptor.writeUInt16LE(value & 0xffff, low);
    if (this.#isLong) descriptor.writeUInt16LE(value >>> 16, high);
  }

  #add(descriptor: Buffer, field: Field, change: number): void {
    this.#set(descriptor, field, counted(this.#count(descriptor, field) + change));
  }

  #checksum(descriptor: Buffer, field: Field, bitmap: Buffer): void {
    if (this.#geometry.checksums === 'crc32c') this.#set(descriptor, field, crc32c(this.#geometry.seed, bitmap));
  }
}

/** @throws AenvError `image_invalid` when there was less than nothing */
function counted(value: number): number {
  if (value < 0) throw invalid('the counts of its ext4 are damaged');
  return value;
}
