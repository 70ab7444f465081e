import type { Node, NodeKind } from '../model/node.ts';
import type { Tree } from '../model/tree.ts';
import { ByteWriter } from './bytes.ts';

export const MAGIC = 'aenv-ext4-model\n';
export const VERSION = 1;
export const KINDS: readonly NodeKind[] = ['file', 'folder', 'symlink', 'character-device', 'block-device', 'fifo'];

/** All that a later layer has to know of a tree whose changes are written. */
export function encodeTree(tree: Tree): Buffer {
  const out = new ByteWriter();
  const { identity, totals } = tree;
  out.bytes(Buffer.from(MAGIC, 'latin1'));
  out.u32(VERSION);
  out.f64(identity.sizeBytes);
  out.bytes(identity.uuid);
  out.bytes(identity.hashSeed);
  out.shortText(identity.label);
  for (const value of [totals.entries, totals.devices, totals.bytes, totals.metadataBytes]) out.f64(value);
  const { next, bits } = tree.blocks.state;
  out.u32(next);
  out.u32(bits.length);
  out.bytes(bits);
  out.u32(tree.inodes.next);
  const nodes = [...tree.inodes.all()];
  out.u32(nodes.length);
  for (const node of nodes) encodeNode(out, node);
  return out.result();
}

function encodeNode(out: ByteWriter, node: Node): void {
  out.u32(node.ino);
  out.u8(KINDS.indexOf(node.kind));
  out.u16(node.mode);
  for (const value of [node.uid, node.gid]) out.u32(value);
  out.f64(node.mtime.seconds);
  for (const value of [node.mtime.nanoseconds, node.links, node.xattrBlock]) out.u32(value);
  out.u8(node.inlineXattrs?.length ?? 0);
  out.bytes(node.inlineXattrs ?? new Uint8Array());
  out.u32(node.extents.length);
  for (const { logical, physical, count } of node.extents) for (const part of [logical, physical, count]) out.u32(part);
  out.u32(node.treeBlocks.length);
  for (const block of node.treeBlocks) out.u32(block);
  if (node.kind === 'file') {
    out.f64(node.size);
  } else if (node.kind === 'folder') {
    out.u32(node.blockCount);
    out.u32(node.entries.size);
    for (const [name, entry] of node.entries) {
      out.shortText(name);
      out.u32(entry.node.ino);
    }
  } else if (node.kind === 'symlink') {
    out.text(node.target);
  } else {
    out.u32(node.major);
    out.u32(node.minor);
  }
}
