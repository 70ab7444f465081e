import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { MAX_LINKS } from '../format/inode.ts';
import { BlockMap } from './block-map.ts';
import { type Geometry, geometryOf, INO } from './geometry.ts';
import { InodeTable } from './inode-table.ts';
import type { Entry, Extent, FileNode, FolderNode, Node, SymlinkNode, Timestamp } from './node.ts';

export const LOST_AND_FOUND = 'lost+found';
export const EPOCH: Timestamp = { seconds: 0, nanoseconds: 0 };
/** Folders in folders; more than any path that a system call takes has. */
const MAX_DEPTH = 1000;

/** What a file system is made with, and keeps. */
export interface TreeIdentity {
  readonly sizeBytes: number;
  /** 16 bytes */
  readonly uuid: Buffer;
  /** 16 bytes */
  readonly hashSeed: Buffer;
  readonly label: string;
}

/** What all layers of an image held so far. */
export interface Totals {
  entries: number;
  devices: number;
  /** of file content, holes included */
  bytes: number;
  /** of names, link targets and attributes */
  metadataBytes: number;
}

type NewNode =
  | { readonly kind: 'file' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'symlink'; readonly target: string }
  | {
      readonly kind: 'character-device' | 'block-device' | 'fifo';
      readonly major: number;
      readonly minor: number;
    };

/** An ext4 file system in memory: all of it but the content of files, which is on the disk already. */
export class Tree {
  readonly identity: TreeIdentity;
  readonly geometry: Geometry;
  readonly blocks: BlockMap;
  readonly inodes: InodeTable;
  readonly root: FolderNode;
  readonly totals: Totals = { entries: 0, devices: 0, bytes: 0, metadataBytes: 0 };
  /** number of the layer that is being applied, from 1 */
  layer = 0;
  /** nothing of it was ever written */
  isNew: boolean;
  #dirty = new Set<Node>();

  private constructor(identity: TreeIdentity, blocks: BlockMap, inodes: InodeTable, root: FolderNode, isNew: boolean) {
    this.identity = identity;
    this.geometry = geometryOf(identity.sizeBytes);
    this.blocks = blocks;
    this.inodes = inodes;
    this.root = root;
    this.isNew = isNew;
  }

  /**
   * An empty file system: a root folder, `lost+found` and a journal.
   * @throws AenvError `invalid_request` for a size that cannot be
   */
  static create(identity: TreeIdentity): Tree {
    const geometry = geometryOf(identity.sizeBytes);
    const blocks = new BlockMap(geometry);
    for (let left = geometry.firstData; left > 0; ) left -= blocks.take(left).count;
    const inodes = new InodeTable(geometry);
    const root: FolderNode = { ...folderFields(INO.root, undefined, undefined), mode: 0o755 };
    inodes.put(root);
    const tree = new Tree(identity, blocks, inodes, root, true);
    const journal: Extent = { logical: 0, physical: geometry.journal, count: geometry.journalBlocks };
    const journalFile: FileNode = {
      ...{ ...baseFields(INO.journal), kind: 'file', mode: 0o600, links: 1 },
      ...{ extents: [journal], size: geometry.journalBlocks * 4096 },
    };
    inodes.put(journalFile);
    tree.touch(journalFile);
    tree.touch(root);
    const { node } = tree.add(root, LOST_AND_FOUND, { kind: 'folder' });
    node.mode = 0o700;
    return tree;
  }

  /** The same with what was kept of an earlier one; see the sidecar. */
  static restore(identity: TreeIdentity, blocks: BlockMap, nodes: readonly Node[], next: number, totals: Totals): Tree {
    const geometry = geometryOf(identity.sizeBytes);
    const inodes = new InodeTable(geometry);
    inodes.restore(nodes, next);
    const root = inodes.get(INO.root);
    if (root?.kind !== 'folder') throw new RangeError('no root folder');
    const tree = new Tree(identity, blocks, inodes, root, false);
    Object.assign(tree.totals, totals);
    return tree;
  }

  /** The node has to be written again. */
  touch(node: Node): void {
    this.#dirty.add(node);
    this.inodes.touch(node.ino);
  }

  /** Nodes that changed since the last call, in the order of their numbers. */
  takeDirty(): Node[] {
    const dirty = [...this.#dirty].sort((a, b) => a.ino - b.ino);
    this.#dirty = new Set();
    return dirty;
  }

  /**
   * Makes a node under a name that is free. It belongs to root, is of 1970, and nobody may do anything with it.
   * @throws AenvError `image_invalid` when names or folders are out of what ext4 or Linux can express
   */
  add(folder: FolderNode, name: string, make: NewNode): { readonly node: Node; readonly entry: Entry } {
    checkName(name);
    const ino = this.inodes.take();
    // A folder and its entry know one another; the entry gets its node in a moment.
    const entry: { node: Node; layer: number } = { node: folder, layer: this.layer };
    entry.node = this.#make(ino, make, folder, entry);
    folder.entries.set(name, entry);
    this.inodes.put(entry.node);
    this.touch(entry.node);
    if (make.kind === 'folder') folder.links++;
    this.touch(folder);
    return { node: entry.node, entry };
  }

  /** Gives a node that is no folder another name, which is free. */
  link(folder: FolderNode, name: string, node: Node): void {
    checkName(name);
    if (node.links >= MAX_LINKS) throw new AenvError('image_invalid', `more than ${MAX_LINKS} hard links to a file`);
    node.links++;
    folder.entries.set(name, { node, layer: this.layer });
    this.touch(node);
    this.touch(folder);
  }

  /** Whether a node still has a name. */
  has(node: Node): boolean {
    return this.inodes.get(node.ino) === node;
  }

  /** Takes a name away, and the node with its last name. A folder must be empty. */
  unlink(folder: FolderNode, name: string): void {
    const node = folder.entries.get(name)?.node;
    if (node === undefined) return;
    folder.entries.delete(name);
    this.touch(folder);
    if (node.kind === 'folder') folder.links--;
    else if (--node.links > 0) {
      this.touch(node);
      return;
    }
    this.truncate(node);
    this.dropXattrs(node);
    this.#dirty.delete(node);
    this.inodes.remove(node);
  }

  /** Gives back the blocks of a node's content. */
  truncate(node: Node): void {
    for (const { physical, count } of node.extents) this.blocks.release({ start: physical, count });
    for (const start of node.treeBlocks) this.blocks.release({ start, count: 1 });
    node.extents = [];
    node.treeBlocks = [];
    this.touch(node);
  }

  dropXattrs(node: Node): void {
    if (node.xattrBlock !== 0) this.blocks.release({ start: node.xattrBlock, count: 1 });
    node.xattrBlock = 0;
    node.inlineXattrs = undefined;
    this.touch(node);
  }

  #make(ino: number, make: NewNode, parent: FolderNode, self: Entry): Node {
    switch (make.kind) {
      case 'folder': {
        const folder = folderFields(ino, parent, self);
        if (folder.depth > MAX_DEPTH) throw new AenvError('image_invalid', `folders nested deeper than ${MAX_DEPTH}`);
        return folder;
      }
      case 'file':
        return { ...baseFields(ino), kind: 'file', size: 0 };
      case 'symlink': {
        const symlink: SymlinkNode = { ...baseFields(ino), kind: 'symlink', mode: 0o777, target: make.target };
        return symlink;
      }
      default:
        return { ...baseFields(ino), ...make };
    }
  }
}

function checkName(name: string): void {
  if (name.length > 255) throw new AenvError('image_invalid', 'a name is longer than 255 bytes');
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw new AenvError('image_invalid', 'a name that no file can have');
  }
}

function baseFields(ino: number) {
  return {
    ...{ ino, mode: 0, uid: 0, gid: 0, mtime: EPOCH, links: 1 },
    ...{ inlineXattrs: undefined, xattrBlock: 0, extents: [] as Extent[], treeBlocks: [] as number[] },
  };
}

function folderFields(ino: number, parent: FolderNode | undefined, self: Entry | undefined): FolderNode {
  return {
    ...baseFields(ino),
    ...{ kind: 'folder', links: 2, entries: new Map<string, Entry>(), parent, self },
    ...{ depth: parent === undefined ? 0 : parent.depth + 1, blockCount: 0 },
  };
}
