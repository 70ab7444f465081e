import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Marker, markerOf, splitName } from '../../layers/names.ts';
import type { TarEntry } from '../../tar/entry.ts';
import { quoted, readTar, type TarMember } from '../../tar/reader.ts';
import { fileSystemSeed } from '../format/checksum.ts';
import { clampTime } from '../format/inode.ts';
import { isStorable, layOutXattrs } from '../format/xattrs.ts';
import type { Entry, FolderNode, Node } from '../model/node.ts';
import type { Tree } from '../model/tree.ts';
import type { BlockSink } from '../sink.ts';
import { writeContent } from './content.ts';
import { count, DEFAULT_LIMITS, type LayerLimits } from './limits.ts';
import { clearFolder, isLostAndFound, removeTree } from './remove.ts';
import { resolveFolder } from './resolve.ts';

export interface ApplyOptions {
  readonly limits?: LayerLimits;
  readonly signal?: AbortSignal;
}

/** Largest id; one more means "leave as it is" to chown(2). */
const MAX_ID = 2 ** 32 - 2;
const MAX_TARGET = 4095;

/**
 * Applies a layer to a file system by the rules of the OCI image specification ("Applying Changesets"): later entries
 * replace earlier ones, whiteouts hide lower layers only, owners, modes, times and attributes are kept. Names are
 * hostile, but nothing of them touches the host: they are names in the tree. A last component is never followed, what
 * stands in the way is replaced. After an error the tree is of no use any more.
 *
 * The content of files goes to the sink at once; the rest is due with `writeChanges`.
 * @param tar the uncompressed archive
 * @throws AenvError `image_invalid` that names the entry; what the source or the sink throws; the signal's reason
 */
export async function applyLayer(
  tree: Tree,
  tar: AsyncIterable<Uint8Array>,
  sink: BlockSink,
  options: ApplyOptions = {},
): Promise<void> {
  tree.layer++;
  const applier = new LayerApplier(tree, sink);
  for await (const member of readTar(tar)) {
    options.signal?.throwIfAborted();
    try {
      count(tree.totals, member.entry, options.limits ?? DEFAULT_LIMITS);
      await applier.place(member);
    } catch (error) {
      throw withName(error, member.entry.name);
    }
  }
}

class LayerApplier {
  readonly #tree: Tree;
  readonly #sink: BlockSink;
  /** the folder of the last member: archives have the files of a folder in a row */
  #lastPath: string | undefined;
  #lastFolder: FolderNode | undefined;

  constructor(tree: Tree, sink: BlockSink) {
    this.#tree = tree;
    this.#sink = sink;
  }

  async place(member: TarMember): Promise<void> {
    const { entry } = member;
    const parts = splitName(entry.name);
    const marker = markerOf(parts);
    if (marker !== undefined) return this.#hide(parts.slice(0, -1), marker);
    const name = parts.at(-1);
    if (name === undefined) return this.#placeRoot(entry);
    const folder = this.#folderOf(parts);
    if (entry.type === 'link') return this.#link(entry, folder, name);
    const node = await this.#make(member, folder, name);
    await this.#decorate(entry, node);
  }

  async #placeRoot(entry: TarEntry): Promise<void> {
    if (entry.type !== 'directory') throw new AenvError('image_invalid', 'the root is not a folder');
    await this.#decorate(entry, this.#tree.root);
  }

  #folderOf(parts: readonly string[]): FolderNode {
    const folders = parts.slice(0, -1);
    const path = folders.join('/');
    if (this.#lastFolder !== undefined && this.#lastPath === path) return this.#lastFolder;
    const { root } = this.#tree;
    const folder = resolveFolder(root, root, folders, this.#makeFolder) ?? root;
    this.#lastPath = path;
    this.#lastFolder = folder;
    return folder;
  }

  /** A folder that no layer has an entry for: of root, for all to read, of 1970, so that it is the same in every import. */
  readonly #makeFolder = (parent: FolderNode, name: string, inTheWay: Entry | undefined): FolderNode => {
    if (inTheWay !== undefined) this.#clear(parent, name);
    const { node, entry } = this.#tree.add(parent, name, { kind: 'folder' });
    if (node.kind !== 'folder') throw new Error('no folder');
    node.mode = 0o755;
    this.#claim(parent, entry);
    return node;
  };

  async #make(member: TarMember, folder: FolderNode, name: string): Promise<Node> {
    const { entry } = member;
    const existing = folder.entries.get(name);
    if (existing?.node.kind === 'folder' && entry.type === 'directory') {
      this.#claim(folder, existing);
      return existing.node;
    }
    if (existing !== undefined) this.#clear(folder, name);
    const added = this.#tree.add(folder, name, newNode(entry));
    this.#claim(folder, added.entry);
    if (added.node.kind === 'file') await writeContent(this.#tree, this.#sink, added.node, member.pieces(), entry.size);
    return added.node;
  }

  /** Owner, mode, time and attributes. */
  async #decorate(entry: TarEntry, node: Node): Promise<void> {
    if (entry.uid > MAX_ID || entry.gid > MAX_ID) throw new AenvError('image_invalid', 'an owner is out of range');
    node.uid = entry.uid;
    node.gid = entry.gid;
    if (node.kind !== 'symlink') node.mode = entry.mode;
    node.mtime = clampTime(entry.mtime);
    this.#tree.dropXattrs(node);
    if (node.kind !== 'file' && node.kind !== 'folder') return;
    const { inline, block } = layOutXattrs(new Map([...entry.xattrs].filter(([name]) => isKept(name))));
    node.inlineXattrs = inline;
    if (block === undefined) return;
    node.xattrBlock = this.#tree.blocks.take(1).start;
    await this.#sink.write(node.xattrBlock, block(node.xattrBlock, fileSystemSeed(this.#tree.identity.uuid)));
  }

  #link(entry: TarEntry, folder: FolderNode, name: string): void {
    const { root } = this.#tree;
    const parts = splitName(entry.linkName);
    const source = resolveFolder(root, root, parts.slice(0, -1))?.entries.get(parts.at(-1) ?? '')?.node;
    const existing = folder.entries.get(name);
    if (existing !== undefined && existing.node !== source) this.#clear(folder, name);
    // What was in the way may have been a folder with the file in it.
    if (source === undefined || source.kind === 'folder' || !this.#tree.has(source)) {
      throw new AenvError('image_invalid', `a hard link to ${quoted(entry.linkName)}, which is no file of the image`);
    }
    if (existing?.node !== source) this.#tree.link(folder, name, source);
    this.#claim(folder, folder.entries.get(name));
  }

  #hide(parts: readonly string[], marker: Marker): void {
    if (marker.kind === 'ignored') return;
    const { root } = this.#tree;
    const folder = resolveFolder(root, root, parts);
    if (folder === undefined) return;
    this.#forget();
    if (marker.kind === 'opaque') clearFolder(this.#tree, folder, true);
    else removeTree(this.#tree, folder, marker.target, true);
  }

  #clear(folder: FolderNode, name: string): void {
    if (isLostAndFound(folder, name)) {
      throw new AenvError('image_invalid', 'something else than a folder in the place of lost+found, which ext4 needs');
    }
    this.#forget();
    removeTree(this.#tree, folder, name, false);
  }

  /** A folder may be gone, or something on the way to it replaced. */
  #forget(): void {
    this.#lastFolder = undefined;
  }

  /** The current layer has something here, and so all folders above have something of it. */
  #claim(folder: FolderNode, entry: Entry | undefined): void {
    const { layer } = this.#tree;
    if (entry !== undefined) entry.layer = layer;
    claimAbove(folder, layer);
  }
}

function claimAbove(folder: FolderNode, layer: number): void {
  for (let at: FolderNode | undefined = folder; at?.self !== undefined && at.self.layer !== layer; at = at.parent) {
    at.self.layer = layer;
  }
}

function newNode(entry: TarEntry): Parameters<Tree['add']>[2] {
  switch (entry.type) {
    case 'file':
      return { kind: 'file' };
    case 'directory':
      return { kind: 'folder' };
    case 'symlink': {
      const { length } = entry.linkName;
      if (length === 0) throw new AenvError('image_invalid', 'a symbolic link without a target');
      if (length > MAX_TARGET) throw new AenvError('image_invalid', `a symbolic link to ${length} bytes`);
      return { kind: 'symlink', target: entry.linkName };
    }
    case 'link':
      throw new Error('hard links are no nodes');
    default: {
      const { devMajor: major, devMinor: minor } = entry;
      // What Linux can express.
      const isValid = major >= 0 && major < 1 << 12 && minor >= 0 && minor < 1 << 20;
      if (!isValid) throw new AenvError('image_invalid', 'a device number is out of range');
      return { kind: entry.type, major, minor };
    }
  }
}

/** Labels of the machine that made the layer, and bookkeeping of its overlay file system, are no part of the image. */
function isKept(name: string): boolean {
  if (name.startsWith('security.')) return name === 'security.capability';
  return isStorable(name) && !name.startsWith('trusted.overlay.');
}

function withName(error: unknown, name: string): unknown {
  const own = error instanceof AenvError && error.code === 'image_invalid' && !error.message.includes('layer entry');
  if (!own) return error;
  return new AenvError('image_invalid', `layer entry ${quoted(name)}: ${error.message}`, {
    remediation: error.remediation,
    cause: error,
  });
}
