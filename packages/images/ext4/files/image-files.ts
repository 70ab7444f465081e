import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Attributes, RootFiles } from '../../start-state/root-files.ts';
import { quoted } from '../../tar/reader.ts';
import { writeContent } from '../apply/content.ts';
import { removeTree } from '../apply/remove.ts';
import { type FolderMaker, type Place, resolveFolder, resolvePath } from '../apply/resolve.ts';
import { BLOCK_SIZE } from '../model/geometry.ts';
import type { Entry, FileNode, FolderNode, Node, SymlinkNode } from '../model/node.ts';
import { EPOCH, type Tree } from '../model/tree.ts';
import type { BlockReader, BlockSink } from '../sink.ts';

/** Account files and the like are small; anything larger is none. */
const MAX_TEXT = 1024 * 1024;

/** Single files of an image whose file system we make. */
export class ImageFiles implements RootFiles<Node> {
  readonly #tree: Tree;
  readonly #sink: BlockSink;
  readonly #reader: BlockReader;
  /** contents that were written here, which the reader does not have yet */
  readonly #written = new Map<Node, Buffer>();

  /** @param reader shows the layers below, and none of what goes to `sink` */
  constructor(tree: Tree, sink: BlockSink, reader: BlockReader) {
    this.#tree = tree;
    this.#sink = sink;
    this.#reader = reader;
  }

  /** What a path means; undefined when it does not exist. */
  find(path: string): Node | undefined {
    const found = resolvePath(this.#tree.root, path);
    return found === undefined || !('entry' in found) ? found : found.entry.node;
  }

  /** The folder that a path means; undefined when there is none. */
  folder(path: string): FolderNode | undefined {
    const found = this.find(path);
    return found?.kind === 'folder' ? found : undefined;
  }

  /** The folder of a path, made with all above it (0755, owned by root) where missing. */
  makeFolder(path: string): FolderNode {
    const { root } = this.#tree;
    const make: FolderMaker = (parent, name, inTheWay) => {
      if (inTheWay !== undefined) throw new AenvError('image_invalid', `a file stands in the way at ${quoted(path)}`);
      return this.addFolder(parent, name, { mode: 0o755, uid: 0, gid: 0 });
    };
    return resolveFolder(root, root, path.split('/'), make) ?? root;
  }

  *entries(folder: FolderNode): Generator<readonly [string, Node]> {
    for (const [name, { node }] of folder.entries) yield [name, node];
  }

  isInside(folder: FolderNode, outer: FolderNode): boolean {
    for (let at: FolderNode | undefined = folder; at !== undefined; at = at.parent) if (at === outer) return true;
    return false;
  }

  attributes({ mode, uid, gid, mtime }: Node): Required<Attributes> {
    return { mode, uid, gid, mtime };
  }

  size(file: FileNode): number {
    return file.size;
  }

  target(link: SymlinkNode): string {
    return link.target;
  }

  addFolder(parent: FolderNode, name: string, attributes: Attributes): FolderNode {
    const { node } = this.#tree.add(parent, name, { kind: 'folder' });
    if (node.kind !== 'folder') throw new Error('no folder');
    this.setAttributes(node, attributes);
    return node;
  }

  addSymlink(parent: FolderNode, name: string, target: string, attributes: Attributes): void {
    this.setAttributes(this.#tree.add(parent, name, { kind: 'symlink', target }).node, { ...attributes, mode: 0o777 });
  }

  async addFile(parent: FolderNode, name: string, content: Buffer, attributes: Attributes): Promise<void> {
    const { node } = this.#tree.add(parent, name, { kind: 'file' });
    if (node.kind !== 'file') throw new Error('no file');
    await writeContent(this.#tree, this.#sink, node, [{ offset: 0, data: content }], content.length);
    this.#written.set(node, content);
    this.setAttributes(node, attributes);
  }

  setAttributes(node: Node, { mode, uid, gid, mtime = EPOCH }: Attributes): void {
    Object.assign(node, { mode, uid, gid, mtime });
    this.#tree.touch(node);
  }

  setMode(node: Node, mode: number): void {
    node.mode = mode;
    this.#tree.touch(node);
  }

  /** The content of a file that is known to be small. */
  async content(file: FileNode): Promise<Buffer> {
    const known = this.#written.get(file);
    if (known !== undefined) return known;
    const content = Buffer.alloc(Math.ceil(file.size / BLOCK_SIZE) * BLOCK_SIZE);
    for (const { logical, physical, count } of file.extents) {
      const target = content.subarray(logical * BLOCK_SIZE, (logical + count) * BLOCK_SIZE);
      await this.#reader.read(target, physical * BLOCK_SIZE);
    }
    return content.subarray(0, file.size);
  }

  /**
   * @returns undefined when there is no such regular file
   * @throws AenvError `image_invalid` when it is larger than 1 MiB
   */
  async readText(path: string): Promise<string | undefined> {
    const node = this.find(path);
    if (node?.kind !== 'file') return undefined;
    if (node.size > MAX_TEXT) throw new AenvError('image_invalid', `${quoted(path)} is larger than 1 MiB`);
    return (await this.content(node)).toString('latin1');
  }

  /**
   * Writes a file as a new one. It takes the place of the one that the path means, with its owner, mode and time; other
   * names of that one keep the old content. Where there is none, it belongs to root.
   * @param mode for a new file
   */
  async writeText(path: string, text: string, mode: number): Promise<void> {
    const { folder, name, entry } = this.#place(path);
    const old = entry?.node;
    if (old?.kind === 'folder') throw new AenvError('image_invalid', `${quoted(path)} is a folder`);
    const kept = old === undefined ? { uid: 0, gid: 0 } : { uid: old.uid, gid: old.gid, mtime: old.mtime };
    if (old !== undefined) removeTree(this.#tree, folder, name, false);
    const attributes = { ...kept, mode: old?.kind === 'file' ? old.mode : mode };
    await this.addFile(folder, name, Buffer.from(text, 'latin1'), attributes);
  }

  #place(path: string): Omit<Place, 'entry'> & { readonly entry?: Entry } {
    const found = resolvePath(this.#tree.root, path);
    if (found !== undefined && 'entry' in found) return found;
    const parts = path.split('/');
    const name = parts.pop() ?? '';
    if (found !== undefined || name === '') throw new AenvError('image_invalid', `${quoted(path)} is a folder`);
    const folder = this.makeFolder(parts.join('/'));
    // A link that leads nowhere is replaced.
    const entry = folder.entries.get(name);
    return entry === undefined ? { folder, name } : { folder, name, entry };
  }
}
