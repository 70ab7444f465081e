import { BlockMap } from '../model/block-map.ts';
import { geometryOf, INO } from '../model/geometry.ts';
import type { Entry, Extent, FolderNode, Node, NodeKind } from '../model/node.ts';
import { Tree } from '../model/tree.ts';
import { ByteCursor } from './bytes.ts';
import { KINDS, MAGIC, VERSION } from './encode.ts';

/**
 * The tree that `encodeTree` wrote down.
 * @throws RangeError when the bytes are no such thing
 */
export function decodeTree(data: Buffer): Tree {
  const input = new ByteCursor(data);
  if (input.bytes(MAGIC.length).toString('latin1') !== MAGIC || input.u32() !== VERSION)
    throw new RangeError('no model');
  const identity = {
    sizeBytes: input.f64(),
    uuid: Buffer.from(input.bytes(16)),
    hashSeed: Buffer.from(input.bytes(16)),
    label: input.shortText(),
  };
  const totals = { entries: input.f64(), devices: input.f64(), bytes: input.f64(), metadataBytes: input.f64() };
  const next = input.u32();
  const bits = input.bytes(input.u32());
  const blocks = BlockMap.restore(geometryOf(identity.sizeBytes), { next, bits });
  const nextIno = input.u32();
  const records = new Map<number, RawNode>();
  for (let left = input.u32(); left > 0; left--) {
    const record = readNode(input);
    records.set(record.fields.ino, record);
  }
  if (!input.isAtEnd) throw new RangeError('bytes behind the model');
  return Tree.restore(identity, blocks, connect(records), nextIno, totals);
}

type Fields = Omit<Extract<Node, { kind: 'file' }>, 'kind' | 'size'>;

/** A node whose folders are not connected yet. */
interface RawNode {
  readonly kind: NodeKind;
  readonly fields: Fields;
  readonly size: number;
  readonly blockCount: number;
  readonly entries: readonly (readonly [name: string, ino: number])[];
  readonly target: string;
  readonly major: number;
  readonly minor: number;
}

function readNode(input: ByteCursor): RawNode {
  const ino = input.u32();
  const kind = KINDS[input.u8()];
  if (kind === undefined) throw new RangeError('a node of no kind');
  const [mode, uid, gid] = [input.u16(), input.u32(), input.u32()];
  const mtime = { seconds: input.f64(), nanoseconds: input.u32() };
  const [links, xattrBlock, inlineLength] = [input.u32(), input.u32(), input.u8()];
  const inlineXattrs = inlineLength === 0 ? undefined : Buffer.from(input.bytes(inlineLength));
  const extents: Extent[] = [];
  for (let left = input.u32(); left > 0; left--) {
    extents.push({ logical: input.u32(), physical: input.u32(), count: input.u32() });
  }
  const treeBlocks: number[] = [];
  for (let left = input.u32(); left > 0; left--) treeBlocks.push(input.u32());
  const fields = { ino, mode, uid, gid, mtime, links, xattrBlock, inlineXattrs, extents, treeBlocks };
  const entries: (readonly [string, number])[] = [];
  const none = { size: 0, blockCount: 0, entries, target: '', major: 0, minor: 0 };
  switch (kind) {
    case 'file':
      return { kind, fields, ...none, size: input.f64() };
    case 'folder': {
      const blockCount = input.u32();
      for (let left = input.u32(); left > 0; left--) entries.push([input.shortText(), input.u32()]);
      return { kind, fields, ...none, blockCount };
    }
    case 'symlink':
      return { kind, fields, ...none, target: input.text() };
    default:
      return { kind, fields, ...none, major: input.u32(), minor: input.u32() };
  }
}

/** Makes nodes of the records, from the root down, since a folder is made with its parent. */
function connect(records: ReadonlyMap<number, RawNode>): Node[] {
  const nodes = new Map<number, Node>();
  const todo: FolderNode[] = [];
  const make = (ino: number, parent: FolderNode | undefined, self: Entry | undefined): Node => {
    const record = records.get(ino);
    if (record === undefined) throw new RangeError('a name of no node');
    const node = toNode(record, parent, self);
    nodes.set(ino, node);
    if (node.kind === 'folder') todo.push(node);
    return node;
  };
  const root = make(INO.root, undefined, undefined);
  if (root.kind !== 'folder') throw new RangeError('no root folder');
  make(INO.journal, undefined, undefined);
  for (let folder = todo.pop(); folder !== undefined; folder = todo.pop()) {
    for (const [name, ino] of records.get(folder.ino)?.entries ?? []) {
      const known = nodes.get(ino);
      if (known?.kind === 'folder') throw new RangeError('a folder with two names');
      const entry: Entry = { node: known ?? folder, layer: 0 };
      if (known === undefined) entry.node = make(ino, folder, entry);
      folder.entries.set(name, entry);
    }
  }
  if (nodes.size !== records.size) throw new RangeError('a node without a name');
  return [...nodes.values()].sort((a, b) => a.ino - b.ino);
}

function toNode(record: RawNode, parent: FolderNode | undefined, self: Entry | undefined): Node {
  const { kind, fields, size, blockCount, target, major, minor } = record;
  switch (kind) {
    case 'file':
      return { ...fields, kind, size };
    case 'folder': {
      const depth = parent === undefined ? 0 : parent.depth + 1;
      return { ...fields, kind, entries: new Map<string, Entry>(), parent, self, depth, blockCount };
    }
    case 'symlink':
      return { ...fields, kind, target };
    default:
      return { ...fields, kind, major, minor };
  }
}
