import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { BLOCK_SIZE } from '../model/geometry.ts';
import { crc32c } from './checksum.ts';
import { toDiskAcl } from './posix-acl.ts';

const MAGIC = 0xea020000;
const HEADER = 32;
const ENTRY = 16;
/** bytes of an inode behind its fields and the magic number */
const INLINE_ROOM = 256 - 160 - 4;

/** Prefixes with the numbers that stand for them (kernel documentation, "Extended Attributes"); longer ones first. */
const PREFIXES: readonly (readonly [string, number])[] = [
  ['system.posix_acl_access', 2],
  ['system.posix_acl_default', 3],
  ['user.', 1],
  ['trusted.', 4],
  ['security.', 6],
];

interface Attribute {
  readonly index: number;
  readonly name: Buffer;
  readonly value: Buffer;
}

/** Where the attributes of a file go. */
export interface XattrLayout {
  /** entries for the inode itself, without the magic number; undefined when there are none */
  readonly inline: Buffer | undefined;
  /** makes the block for the rest; undefined when all are in the inode */
  readonly block: ((blockNumber: number, seed: number) => Buffer) | undefined;
}

/**
 * Lays out extended attributes: in the inode what fits, the rest in one block.
 * @param xattrs names with their prefix, in UTF-8; values as setxattr(2) takes them
 * @throws AenvError `image_invalid` when they do not fit, or when one has no name or a wrong form
 */
export function layOutXattrs(xattrs: ReadonlyMap<string, Buffer>): XattrLayout {
  const attributes = [...xattrs].flatMap(([name, value]) => toAttribute(name, value)).sort(compare);
  const inline: Attribute[] = [];
  const outside: Attribute[] = [];
  let room = INLINE_ROOM - 4;
  for (const attribute of attributes) {
    const size = sizeOf(attribute);
    if (size <= room) {
      room -= size;
      inline.push(attribute);
    } else outside.push(attribute);
  }
  const total = outside.reduce((sum, attribute) => sum + sizeOf(attribute), 0);
  if (total > BLOCK_SIZE - HEADER - 4) {
    throw new AenvError('image_invalid', `extended attributes of ${total} bytes; a file can have about 4 KiB of them`);
  }
  return {
    inline: inline.length === 0 ? undefined : writeEntries(Buffer.alloc(INLINE_ROOM), 0, inline),
    block: outside.length === 0 ? undefined : (number, seed) => encodeBlock(outside, number, seed),
  };
}

/** Whether ext4 has a place for attributes of this name. */
export function isStorable(name: string): boolean {
  return PREFIXES.some(([prefix]) => (prefix.endsWith('.') ? name.startsWith(prefix) : name === prefix));
}

function toAttribute(name: string, value: Buffer): Attribute[] {
  const found = PREFIXES.find(([prefix]) => (prefix.endsWith('.') ? name.startsWith(prefix) : name === prefix));
  if (found === undefined) return [];
  const [prefix, index] = found;
  const rest = Buffer.from(name.slice(prefix.length), 'utf8');
  if (prefix.endsWith('.') !== rest.length > 0 || rest.length > 255 || rest.includes(0)) {
    throw new AenvError('image_invalid', 'the name of an extended attribute is empty, too long or holds a zero byte');
  }
  if (prefix.endsWith('.')) return [{ index, name: rest, value }];
  const acl = toDiskAcl(value);
  return acl === undefined ? [] : [{ index, name: rest, value: acl }];
}

/** The order that the kernel searches blocks in. */
function compare(a: Attribute, b: Attribute): number {
  return a.index - b.index || a.name.length - b.name.length || a.name.compare(b.name);
}

function padded(length: number): number {
  return (length + 3) & ~3;
}

function sizeOf({ name, value }: Attribute): number {
  return ENTRY + padded(name.length) + padded(value.length);
}

function encodeBlock(attributes: readonly Attribute[], blockNumber: number, seed: number): Buffer {
  const block = Buffer.alloc(BLOCK_SIZE);
  block.writeUInt32LE(MAGIC, 0);
  block.writeUInt32LE(1, 4);
  block.writeUInt32LE(1, 8);
  writeEntries(block, HEADER, attributes);
  const hashes = attributes.map(hashOf);
  const hash = hashes.includes(0) ? 0 : hashes.reduce((sum, one) => ((sum << 16) ^ (sum >>> 16) ^ one) >>> 0, 0);
  block.writeUInt32LE(hash, 12);
  const number = Buffer.alloc(8);
  number.writeUInt32LE(blockNumber);
  block.writeUInt32LE(crc32c(crc32c(seed, number), block), 16);
  return block;
}

/** Entries from `at` on, values from the end on. Offsets of values count from where the kernel expects: 0 of `target`. */
function writeEntries(target: Buffer, at: number, attributes: readonly Attribute[]): Buffer {
  let entry = at;
  let end = target.length;
  for (const attribute of attributes) {
    const { index, name, value } = attribute;
    if (value.length > 0) end -= padded(value.length);
    value.copy(target, end);
    target.writeUInt8(name.length, entry);
    target.writeUInt8(index, entry + 1);
    target.writeUInt16LE(value.length > 0 ? end : 0, entry + 2);
    target.writeUInt32LE(value.length, entry + 8);
    target.writeUInt32LE(hashOf(attribute), entry + 12);
    name.copy(target, entry + ENTRY);
    entry += ENTRY + padded(name.length);
  }
  return target;
}

function hashOf({ name, value }: Attribute): number {
  let hash = 0;
  for (const byte of name) hash = ((hash << 5) ^ (hash >>> 27) ^ byte) >>> 0;
  const words = Buffer.alloc(padded(value.length));
  value.copy(words);
  for (let at = 0; at < words.length; at += 4) {
    hash = ((hash << 16) ^ (hash >>> 16) ^ words.readUInt32LE(at)) >>> 0;
  }
  return hash;
}
