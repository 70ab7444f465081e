import type { MemoryDisk } from './ext4.ts';

/** A file as it stands on a disk. */
export interface DiskFile {
  readonly ino: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly links: number;
  /** seconds and nanoseconds */
  readonly mtime: readonly [number, number];
  /** of a file its bytes, of a link its target */
  readonly content: Buffer;
}

const BLOCK = 4096;
const FOLDER = 0o040000;
const SYMLINK = 0o120000;
const FILE = 0o100000;

/** Reads ext4 from the bytes alone, with no code of the writer. Only what the writer makes: extents, 256-byte inodes. */
export class Ext4Reader {
  readonly #blocks: ReadonlyMap<number, Buffer>;
  readonly #tables: number[] = [];
  readonly #inodesPerGroup: number;

  constructor(disk: MemoryDisk) {
    this.#blocks = disk.blocks;
    const superblock = this.#block(0).subarray(1024);
    this.#inodesPerGroup = superblock.readUInt32LE(40);
    const groups = Math.ceil(superblock.readUInt32LE(4) / superblock.readUInt32LE(32));
    for (let group = 0; group < groups; group++) {
      const at = group * 32;
      this.#tables.push(this.#block(1 + Math.floor(at / BLOCK)).readUInt32LE((at % BLOCK) + 8));
    }
  }

  /** All files by path, the root as ''. */
  tree(): Map<string, DiskFile> {
    const found = new Map<string, DiskFile>();
    const walk = (path: string, ino: number): void => {
      const file = this.#file(ino);
      found.set(path, file);
      if ((file.mode & 0o170000) !== FOLDER) return;
      for (const [name, child] of this.#entries(file.content)) {
        if (name !== '.' && name !== '..') walk(path === '' ? name : `${path}/${name}`, child);
      }
    };
    walk('', 2);
    return found;
  }

  #file(ino: number): DiskFile {
    const group = Math.floor((ino - 1) / this.#inodesPerGroup);
    const at = ((ino - 1) % this.#inodesPerGroup) * 256;
    const block = this.#block((this.#tables[group] ?? 0) + Math.floor(at / BLOCK));
    const inode = block.subarray(at % BLOCK, (at % BLOCK) + 256);
    const mode = inode.readUInt16LE(0);
    const size = inode.readUInt32LE(4) + inode.readUInt32LE(108) * 2 ** 32;
    const extra = inode.readUInt32LE(136);
    const type = mode & 0o170000;
    const inline = type === SYMLINK && size < 60;
    const hasContent = type === FILE || type === FOLDER || type === SYMLINK;
    return {
      ino,
      mode,
      uid: inode.readUInt16LE(2) + inode.readUInt16LE(120) * 65_536,
      gid: inode.readUInt16LE(24) + inode.readUInt16LE(122) * 65_536,
      links: inode.readUInt16LE(26),
      mtime: [inode.readInt32LE(16) + (extra & 3) * 2 ** 32, extra >>> 2],
      content: inline ? inode.subarray(40, 40 + size) : hasContent ? this.#content(inode, size) : Buffer.alloc(0),
    };
  }

  #content(inode: Buffer, size: number): Buffer {
    const content = Buffer.alloc(Math.ceil(size / BLOCK) * BLOCK);
    this.#extents(inode.subarray(40, 100), content);
    return content.subarray(0, size);
  }

  #extents(node: Buffer, content: Buffer): void {
    if (node.readUInt16LE(0) !== 0xf30a) throw new Error('no extents');
    const depth = node.readUInt16LE(6);
    for (let index = 0; index < node.readUInt16LE(2); index++) {
      const at = 12 * (1 + index);
      if (depth > 0) {
        this.#extents(this.#block(node.readUInt32LE(at + 4)), content);
        continue;
      }
      for (let block = 0; block < node.readUInt16LE(at + 4); block++) {
        this.#block(node.readUInt32LE(at + 8) + block).copy(content, (node.readUInt32LE(at) + block) * BLOCK);
      }
    }
  }

  /** Every block of a folder is read from its start: inner blocks of a hash tree look like an unused entry. */
  *#entries(content: Buffer): Generator<[string, number]> {
    for (let block = 0; block < content.length; block += BLOCK) {
      for (let at = block; at < block + BLOCK; ) {
        const length = content.readUInt16LE(at + 4);
        const ino = content.readUInt32LE(at);
        if (ino !== 0) yield [content.toString('latin1', at + 8, at + 8 + content.readUInt8(at + 6)), ino];
        at += length;
      }
    }
  }

  #block(number: number): Buffer {
    return this.#blocks.get(number) ?? Buffer.alloc(BLOCK);
  }
}
