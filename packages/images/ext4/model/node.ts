/** A point in time as ext4 keeps it. */
export interface Timestamp {
  /** since the epoch, may be negative */
  readonly seconds: number;
  /** 0 to 999,999,999 */
  readonly nanoseconds: number;
}

/** A run of blocks of a file. */
export interface Extent {
  /** first block in the file */
  readonly logical: number;
  /** first block on the disk */
  readonly physical: number;
  readonly count: number;
}

/** What every inode has. */
interface NodeBase {
  readonly ino: number;
  /** permission bits, setuid, setgid and sticky included */
  mode: number;
  uid: number;
  gid: number;
  mtime: Timestamp;
  /** names of this inode; of a folder, 2 and its sub-folders */
  links: number;
  /** entries of extended attributes that are kept in the inode itself, encoded */
  inlineXattrs: Buffer | undefined;
  /** block with the other attributes, 0 for none */
  xattrBlock: number;
  extents: Extent[];
  /** blocks of the extent tree where it does not fit into the inode */
  treeBlocks: number[];
}

export interface FileNode extends NodeBase {
  readonly kind: 'file';
  /** bytes */
  size: number;
}

export interface FolderNode extends NodeBase {
  readonly kind: 'folder';
  /** by name, one byte a character (latin1) */
  readonly entries: Map<string, Entry>;
  readonly parent: FolderNode | undefined;
  /** the one of this folder in its parent; undefined for the root */
  readonly self: Entry | undefined;
  /** folders above it */
  readonly depth: number;
  /** blocks of the folder, more than one with a hash tree */
  blockCount: number;
}

export interface SymlinkNode extends NodeBase {
  readonly kind: 'symlink';
  /** one byte a character (latin1) */
  readonly target: string;
}

export interface SpecialNode extends NodeBase {
  readonly kind: 'character-device' | 'block-device' | 'fifo';
  readonly major: number;
  readonly minor: number;
}

export type Node = FileNode | FolderNode | SymlinkNode | SpecialNode;

/** A name in a folder. */
export interface Entry {
  node: Node;
  /** number of the layer that last had a member under this name or below it */
  layer: number;
}

export type NodeKind = Node['kind'];
