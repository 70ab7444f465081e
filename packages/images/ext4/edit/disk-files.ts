import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ROOT_LABEL } from '@aenv/contracts/guest/layout.ts';
import type { Attributes, RootFiles } from '../../start-state/root-files.ts';
import { quoted } from '../../tar/reader.ts';
import { ENTRY_TYPE } from '../format/folder.ts';
import { encodeTarget, MAX_INLINE_TARGET } from '../format/inode.ts';
import { BLOCK_SIZE } from '../model/geometry.ts';
import type { NodeKind } from '../model/node.ts';
import { EPOCH } from '../model/tree.ts';
import type { BlockReader, BlockSink } from '../sink.ts';
import { BlockEdits } from './block-edits.ts';
import { FileContents } from './contents.ts';
import { FolderBlocks } from './folder-blocks.ts';
import { type DiskGeometry, invalid, readGeometry } from './geometry.ts';
import { Groups } from './groups.ts';
import { InodeRecord, InodeTable } from './inode-record.ts';

/** A file, folder or link of the disk. */
export interface DiskNode {
  readonly ino: number;
  readonly kind: NodeKind;
}

const ROOT: DiskNode = { ino: 2, kind: 'folder' };
/** As many as the kernel follows in one path (path_resolution(7)). */
const MAX_LINKS = 40;
const MAX_DEPTH = 512;
/** EXT4_LINK_MAX of the kernel. */
const MOST_LINKS = 65_000;
const TYPE_BITS = { file: 0o100000, folder: 0o040000, symlink: 0o120000 } as const;

/** Where a path leads: `node` is what it means, and is missing where the last name is. */
interface Place {
  readonly folder: DiskNode;
  readonly name: string;
  readonly node?: DiskNode;
}

/**
 * Single files of an ext4 file system that somebody else has made, read and changed on the disk itself. Only what is
 * looked at is read, so the disk may be far away. Nothing that it says is trusted: what is damaged or unusual is refused.
 */
export class DiskFiles implements RootFiles<DiskNode> {
  readonly #edits: BlockEdits;
  readonly #groups: Groups;
  readonly #inodes: InodeTable;
  readonly #folders: FolderBlocks;
  readonly #contents: FileContents;
  readonly #geometry: DiskGeometry;
  /** what was met by name: the same file is the same object */
  readonly #nodes = new Map<number, DiskNode>([[ROOT.ino, ROOT]]);

  private constructor(edits: BlockEdits, geometry: DiskGeometry) {
    this.#edits = edits;
    this.#geometry = geometry;
    this.#groups = new Groups(edits, geometry);
    this.#inodes = new InodeTable(edits, this.#groups, geometry);
    this.#contents = new FileContents(edits, this.#groups);
    this.#folders = new FolderBlocks(edits, this.#groups, this.#inodes, geometry);
  }

  /**
   * @param reader the disk; it stays as it is
   * @throws AenvError `image_invalid`; what the reader throws
   */
  static async open(reader: BlockReader, sizeBytes: number, signal?: AbortSignal): Promise<DiskFiles> {
    if (sizeBytes < BLOCK_SIZE) throw invalid('its disk is empty');
    const edits = new BlockEdits(reader, Math.floor(sizeBytes / BLOCK_SIZE), signal);
    return new DiskFiles(edits, readGeometry(await edits.read(0), sizeBytes));
  }

  /** Gives the file system the name that guests find their root by. */
  async setRootLabel(): Promise<void> {
    await this.#groups.setLabel(ROOT_LABEL);
  }

  /** Writes all blocks that were changed. */
  writeTo(sink: BlockSink): Promise<void> {
    return this.#edits.writeTo(sink);
  }

  async find(path: string): Promise<DiskNode | undefined> {
    const place = await this.#resolve(path, false);
    return place?.node;
  }

  async makeFolder(path: string): Promise<DiskNode> {
    const place = await this.#resolve(path, true);
    const node = place?.node ?? (place && (await this.addFolder(place.folder, place.name, ROOT_FOLDER)));
    if (node?.kind === 'folder') return node;
    throw new AenvError('image_invalid', `a file stands in the way at ${quoted(path)}`);
  }

  async *entries(folder: DiskNode): AsyncGenerator<readonly [string, DiskNode]> {
    for (const { name, ino } of await this.#folders.entries(await this.#folder(folder))) {
      if (name !== '.' && name !== '..') yield [name, await this.#node(ino)];
    }
  }

  async isInside(folder: DiskNode, outer: DiskNode): Promise<boolean> {
    let at = folder.ino;
    for (let depth = 0; depth < MAX_DEPTH; depth++) {
      if (at === outer.ino) return true;
      if (at === ROOT.ino) return false;
      at = (await this.#parentOf(at)) ?? ROOT.ino;
    }
    throw invalid('the folders of its ext4 are damaged');
  }

  async addFolder(parent: DiskNode, name: string, attributes: Attributes): Promise<DiskNode> {
    const { inode, node } = await this.#add(parent, name, 'folder');
    inode.links = 2;
    await this.#folders.create(inode, parent.ino);
    await this.#writeWith(inode, attributes);
    const above = await this.#folder(parent);
    // 1 stands for more than can be counted.
    if (above.links > 1) above.links = above.links < MOST_LINKS ? above.links + 1 : 1;
    await this.#inodes.write(above);
    return node;
  }

  async addSymlink(parent: DiskNode, name: string, target: string, attributes: Attributes): Promise<void> {
    const { inode } = await this.#add(parent, name, 'symlink');
    if (target.length > MAX_INLINE_TARGET) await this.#contents.write(inode, Buffer.from(target, 'latin1'));
    else {
      encodeTarget(target).copy(inode.block);
      inode.size = target.length;
    }
    await this.#writeWith(inode, { ...attributes, mode: 0o777 });
  }

  async addFile(parent: DiskNode, name: string, content: Buffer, attributes: Attributes): Promise<void> {
    const { inode } = await this.#add(parent, name, 'file');
    await this.#contents.write(inode, content);
    await this.#writeWith(inode, attributes);
  }

  async attributes({ ino }: DiskNode): Promise<Required<Attributes>> {
    const { mode, uid, gid, mtime } = await this.#inodes.read(ino);
    return { mode, uid, gid, mtime };
  }

  async size({ ino }: DiskNode): Promise<number> {
    return (await this.#inodes.read(ino)).size;
  }

  async content({ ino }: DiskNode): Promise<Buffer> {
    return this.#contents.read(await this.#inodes.read(ino));
  }

  async target({ ino }: DiskNode): Promise<string> {
    const inode = await this.#inodes.read(ino);
    const isInline = inode.size <= MAX_INLINE_TARGET;
    return (isInline ? inode.block.subarray(0, inode.size) : await this.#contents.read(inode)).toString('latin1');
  }

  async setAttributes({ ino }: DiskNode, attributes: Attributes): Promise<void> {
    await this.#writeWith(await this.#inodes.read(ino), attributes);
  }

  async setMode({ ino }: DiskNode, mode: number): Promise<void> {
    const inode = await this.#inodes.read(ino);
    if (inode.mode === mode) return;
    inode.mode = mode;
    await this.#inodes.write(inode);
  }

  async readText(path: string): Promise<string | undefined> {
    const node = await this.find(path);
    return node?.kind === 'file' ? (await this.content(node)).toString('latin1') : undefined;
  }

  async writeText(path: string, text: string, mode: number): Promise<void> {
    const content = Buffer.from(text, 'latin1');
    const place = await this.#resolve(path, true);
    if (place === undefined) throw new AenvError('image_invalid', `${quoted(path)} is a folder`);
    const { folder, name, node } = place;
    if (node === undefined) return this.addFile(folder, name, content, { mode, uid: 0, gid: 0 });
    if (node.kind !== 'file') throw new AenvError('image_invalid', `${quoted(path)} is no file`);
    const inode = await this.#inodes.read(node.ino);
    if (inode.links > 1) return this.#replaceLinked(folder, name, inode, content);
    await this.#contents.write(inode, content);
    await this.#inodes.write(inode);
  }

  /** Other names of a file keep the old content. */
  async #replaceLinked(folder: DiskNode, name: string, old: InodeRecord, content: Buffer): Promise<void> {
    const { mode, uid, gid, mtime } = old;
    const { inode } = await this.#create('file');
    await this.#contents.write(inode, content);
    await this.#writeWith(inode, { mode, uid, gid, mtime });
    await this.#folders.replace(await this.#folder(folder), { name, ino: inode.ino });
    old.links--;
    await this.#inodes.write(old);
  }

  async #add(parent: DiskNode, name: string, kind: keyof typeof TYPE_BITS) {
    const { inode, node } = await this.#create(kind);
    await this.#folders.add(await this.#folder(parent), { name, ino: inode.ino }, ENTRY_TYPE[kind]);
    return { inode, node };
  }

  async #create(kind: keyof typeof TYPE_BITS): Promise<{ readonly inode: InodeRecord; readonly node: DiskNode }> {
    const ino = await this.#groups.takeInode(kind === 'folder');
    const inode = InodeRecord.fresh(ino, this.#geometry.inodeSize, TYPE_BITS[kind]);
    inode.links = 1;
    return { inode, node: { ino, kind } };
  }

  async #writeWith(inode: InodeRecord, { mode, uid, gid, mtime = EPOCH }: Attributes): Promise<void> {
    inode.mode = mode;
    inode.setOwner(uid, gid);
    inode.mtime = mtime;
    await this.#inodes.write(inode);
  }

  /**
   * Walks to what a path means, links followed inside the image and nowhere else; `..` of the root is the root.
   * @param make makes the folders on the way
   * @returns undefined when there is no such place
   */
  async #resolve(path: string, make: boolean): Promise<Place | undefined> {
    // The next component is at the end.
    const todo = path.split('/').reverse();
    let place: Place = { folder: ROOT, name: '', node: ROOT };
    let links = 0;
    for (let part = todo.pop(); part !== undefined; part = todo.pop()) {
      if (part === '' || part === '.') continue;
      let at = place.node;
      if (at === undefined && make) at = await this.addFolder(place.folder, place.name, ROOT_FOLDER);
      if (at === undefined) return undefined;
      if (at.kind !== 'folder') {
        if (make) throw new AenvError('image_invalid', `a file stands in the way at ${quoted(path)}`);
        return undefined;
      }
      if (part === '..') {
        const above: DiskNode = { ino: (await this.#parentOf(at.ino)) ?? ROOT.ino, kind: 'folder' };
        place = { folder: above, name: '', node: above };
        continue;
      }
      const node = await this.#lookUp(at, part);
      if (node?.kind === 'symlink') {
        if (++links > MAX_LINKS) throw new AenvError('image_invalid', 'too many links on the way to a file');
        const target = await this.target(node);
        place = target.startsWith('/') ? { folder: ROOT, name: '', node: ROOT } : { folder: at, name: '', node: at };
        todo.push(...target.split('/').reverse());
      } else place = { folder: at, name: part, ...(node === undefined ? {} : { node }) };
    }
    return place;
  }

  async #lookUp(folder: DiskNode, name: string): Promise<DiskNode | undefined> {
    const ino = await this.#folders.find(await this.#folder(folder), name);
    return ino === undefined ? undefined : this.#node(ino);
  }

  async #parentOf(ino: number): Promise<number | undefined> {
    return this.#folders.find(await this.#folder({ ino, kind: 'folder' }), '..');
  }

  async #node(ino: number): Promise<DiskNode> {
    const known = this.#nodes.get(ino);
    if (known !== undefined) return known;
    const { kind } = await this.#inodes.read(ino);
    // A socket, or damage: nothing that the start state has to do with.
    const node = { ino, kind: kind ?? 'fifo' } as const;
    this.#nodes.set(ino, node);
    return node;
  }

  async #folder({ ino }: DiskNode): Promise<InodeRecord> {
    const inode = await this.#inodes.read(ino);
    if (inode.kind !== 'folder') throw invalid('its ext4 has a folder that is none');
    return inode;
  }
}

const ROOT_FOLDER: Attributes = { mode: 0o755, uid: 0, gid: 0 };
