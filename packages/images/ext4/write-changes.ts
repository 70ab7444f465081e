import { setImmediate } from 'node:timers/promises';
import { fileSystemSeed, inodeSeed } from './format/checksum.ts';
import { appendExtent, encodeExtents, treeBlocksFor } from './format/extent-tree.ts';
import { ENTRY_TYPE, encodeFolder } from './format/folder.ts';
import { encodeDescriptor } from './format/group-descriptor.ts';
import { encodeDevice, encodeInode, encodeTarget, type InodeContent, MAX_INLINE_TARGET } from './format/inode.ts';
import { encodeJournal } from './format/journal.ts';
import { encodeSuperblock } from './format/superblock.ts';
import {
  BLOCK_SIZE,
  DESCRIPTOR_SIZE,
  INO,
  INODE_SIZE,
  INODES_PER_BLOCK,
  INODES_PER_GROUP,
  TABLE_BLOCKS_PER_GROUP,
} from './model/geometry.ts';
import type { FolderNode, Node } from './model/node.ts';
import type { Tree } from './model/tree.ts';
import type { BlockSink } from './sink.ts';

const DESCRIPTORS_PER_BLOCK = BLOCK_SIZE / DESCRIPTOR_SIZE;
/** Nodes between two chances for other work. */
const BREATH = 2000;

/**
 * Writes everything that changed since the last time but the content of files: folders, extent trees, inodes, bitmaps,
 * descriptors and the superblock. What it writes depends on the tree alone, not on the order of its changes.
 * @throws AenvError `image_invalid` when the disk is full; the signal's reason
 */
export async function writeChanges(tree: Tree, sink: BlockSink, signal?: AbortSignal): Promise<void> {
  const seed = fileSystemSeed(tree.identity.uuid);
  const writer = new Writer(tree, sink, seed);
  for (const [at, node] of tree.takeDirty().entries()) {
    if (at % BREATH === BREATH - 1) {
      await setImmediate();
      signal?.throwIfAborted();
    }
    await writer.content(node);
  }
  await writer.inodeTables(signal);
  await writer.groups();
  await writer.head();
  tree.isNew = false;
}

class Writer {
  readonly #tree: Tree;
  readonly #sink: BlockSink;
  readonly #seed: number;

  constructor(tree: Tree, sink: BlockSink, seed: number) {
    this.#tree = tree;
    this.#sink = sink;
    this.#seed = seed;
  }

  /** Blocks that belong to a node but are no file content. */
  async content(node: Node): Promise<void> {
    if (node.kind === 'folder') await this.#folder(node);
    if (node.kind === 'symlink' && node.target.length > MAX_INLINE_TARGET) await this.#longTarget(node, node.target);
    const needed = treeBlocksFor(node.extents.length);
    const { blocks } = this.#tree;
    for (const start of node.treeBlocks.splice(needed)) blocks.release({ start, count: 1 });
    while (node.treeBlocks.length < needed) node.treeBlocks.push(blocks.take(1).start);
    if (needed === 0) return;
    const { blocks: encoded } = this.#extents(node);
    for (const [at, block] of encoded.entries()) await this.#sink.write(node.treeBlocks[at] ?? 0, block);
  }

  async #folder(folder: FolderNode): Promise<void> {
    const { blocks } = this.#tree;
    const entries = [...folder.entries].map(([name, { node }]) => ({
      ...{ name, ino: node.ino, type: ENTRY_TYPE[node.kind] },
    }));
    const encoded = encodeFolder(entries, {
      ino: folder.ino,
      parentIno: folder.parent?.ino ?? folder.ino,
      checksumSeed: inodeSeed(this.#seed, folder.ino),
      hashSeed: this.#tree.identity.hashSeed,
    });
    while (folder.blockCount > encoded.length) {
      const last = folder.extents.pop();
      if (last === undefined) throw new Error('a folder without blocks');
      const count = Math.min(last.count, folder.blockCount - encoded.length);
      blocks.release({ start: last.physical + last.count - count, count });
      if (count < last.count) folder.extents.push({ ...last, count: last.count - count });
      folder.blockCount -= count;
    }
    while (folder.blockCount < encoded.length) {
      const { start, count } = blocks.take(encoded.length - folder.blockCount);
      appendExtent(folder.extents, { logical: folder.blockCount, physical: start, count });
      folder.blockCount += count;
    }
    for (const { logical, physical, count } of folder.extents) {
      for (let at = 0; at < count; at++) await this.#sink.write(physical + at, encoded[logical + at] ?? EMPTY);
    }
  }

  async #longTarget(node: Node, target: string): Promise<void> {
    if (node.extents.length > 0) return;
    const { start } = this.#tree.blocks.take(1);
    node.extents.push({ logical: 0, physical: start, count: 1 });
    const block = Buffer.alloc(BLOCK_SIZE);
    block.write(target, 'latin1');
    await this.#sink.write(start, block);
  }

  async inodeTables(signal: AbortSignal | undefined): Promise<void> {
    const { inodes, geometry } = this.#tree;
    for (const [count, index] of inodes.takeDirtyBlocks().entries()) {
      if (count % BREATH === BREATH - 1) {
        await setImmediate();
        signal?.throwIfAborted();
      }
      const block = Buffer.alloc(BLOCK_SIZE);
      for (let slot = 0; slot < INODES_PER_BLOCK; slot++) {
        const node = inodes.get(index * INODES_PER_BLOCK + slot + 1);
        if (node === undefined) continue;
        const target = block.subarray(slot * INODE_SIZE, (slot + 1) * INODE_SIZE);
        encodeInode(target, node, this.#inodeContent(node), this.#seed);
      }
      await this.#sink.write(geometry.inodeTables + index, block);
    }
  }

  #inodeContent(node: Node): InodeContent {
    const data = node.extents.reduce((sum, { count }) => sum + count, 0);
    const ownedBlocks = data + node.treeBlocks.length + (node.xattrBlock === 0 ? 0 : 1);
    const rest = { ownedBlocks, isIndexed: false };
    switch (node.kind) {
      case 'file':
        return { ...rest, size: node.size, block: this.#extents(node).root, hasExtents: true };
      case 'folder':
        return {
          ...{ ownedBlocks, size: node.blockCount * BLOCK_SIZE, block: this.#extents(node).root },
          ...{ hasExtents: true, isIndexed: node.blockCount > 1 },
        };
      case 'symlink': {
        const size = node.target.length;
        if (size <= MAX_INLINE_TARGET) return { ...rest, size, block: encodeTarget(node.target), hasExtents: false };
        return { ...rest, size, block: this.#extents(node).root, hasExtents: true };
      }
      default: {
        const block = node.kind === 'fifo' ? Buffer.alloc(60) : encodeDevice(node.major, node.minor);
        return { ...rest, size: 0, block, hasExtents: false };
      }
    }
  }

  #extents(node: Node) {
    return encodeExtents(node.extents, node.treeBlocks, inodeSeed(this.#seed, node.ino));
  }

  /** Bitmaps and descriptors. */
  async groups(): Promise<void> {
    const { blocks, inodes, geometry, isNew } = this.#tree;
    const changedBlocks = new Set(blocks.takeDirty());
    const changedInodes = new Set(inodes.takeDirtyGroups());
    const last = geometry.groupCount - 1;
    if (isNew) changedBlocks.add(last);
    for (const group of [...changedBlocks].sort((a, b) => a - b)) {
      await this.#sink.write(geometry.blockBitmaps + group, blocks.bitmap(group));
    }
    for (const group of [...changedInodes].sort((a, b) => a - b)) {
      await this.#sink.write(geometry.inodeBitmaps + group, this.#inodeBitmap(group));
    }
    const changed = new Set<number>();
    for (const group of [...changedBlocks, ...changedInodes]) changed.add(Math.floor(group / DESCRIPTORS_PER_BLOCK));
    for (let index = 0; index < geometry.descriptorBlocks; index++) {
      if (isNew || changed.has(index)) await this.#sink.write(1 + index, this.#descriptors(index));
    }
  }

  #descriptors(index: number): Buffer {
    const { blocks, inodes, geometry } = this.#tree;
    const block = Buffer.alloc(BLOCK_SIZE);
    const from = index * DESCRIPTORS_PER_BLOCK;
    for (let group = from; group < Math.min(from + DESCRIPTORS_PER_BLOCK, geometry.groupCount); group++) {
      const everUsed = Math.min(INODES_PER_GROUP, Math.max(0, inodes.next - 1 - group * INODES_PER_GROUP));
      const at = (group - from) * DESCRIPTOR_SIZE;
      encodeDescriptor(
        block.subarray(at, at + DESCRIPTOR_SIZE),
        {
          group,
          blockBitmap: geometry.blockBitmaps + group,
          inodeBitmap: geometry.inodeBitmaps + group,
          inodeTable: geometry.inodeTables + group * TABLE_BLOCKS_PER_GROUP,
          freeBlocks: blocks.freeIn(group),
          freeInodes: INODES_PER_GROUP - inodes.usedIn(group),
          folders: inodes.foldersIn(group),
          unusedInodes: INODES_PER_GROUP - everUsed,
          blockBits: blocks.isInitialised(group) ? blocks.bitmap(group) : undefined,
          inodeBits: everUsed === 0 ? undefined : this.#inodeBitmap(group).subarray(0, INODES_PER_GROUP / 8),
        },
        this.#seed,
      );
    }
    return block;
  }

  #inodeBitmap(group: number): Buffer {
    const { inodes } = this.#tree;
    // What is behind the group's inodes counts as used.
    const bits = Buffer.alloc(BLOCK_SIZE, 0xff).fill(0, 0, INODES_PER_GROUP / 8);
    const first = group * INODES_PER_GROUP + 1;
    for (let ino = first; ino < Math.min(first + INODES_PER_GROUP, inodes.next); ino++) {
      const at = ino - first;
      if (inodes.isUsed(ino)) bits[at >> 3] = (bits[at >> 3] ?? 0) | (1 << (at & 7));
    }
    return bits;
  }

  /** The superblock, and the journal of a new file system. */
  async head(): Promise<void> {
    const { geometry, identity, blocks, inodes, isNew } = this.#tree;
    const journal = inodes.get(INO.journal);
    if (journal === undefined) throw new Error('no journal');
    if (isNew) await this.#sink.write(geometry.journal, encodeJournal(geometry.journalBlocks, identity.uuid));
    const block = Buffer.alloc(BLOCK_SIZE);
    const superblock = encodeSuperblock({
      ...{ geometry, uuid: identity.uuid, hashSeed: identity.hashSeed, label: identity.label },
      ...{ freeBlocks: blocks.free, freeInodes: inodes.free },
      ...{ journalBlock: this.#extents(journal).root, journalBytes: geometry.journalBlocks * BLOCK_SIZE },
    });
    superblock.copy(block, 1024);
    await this.#sink.write(0, block);
  }
}

const EMPTY = Buffer.alloc(BLOCK_SIZE);
