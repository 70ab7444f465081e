import { crc32 } from 'node:zlib';
import { parseDigest } from '../../oci/digest.ts';
import { CHUNK, MAX_BLOB, PARTS_PER_CHUNK } from '../geometry.ts';

/**
 * The file `index` of a blob in the cache: a header, then one entry for each chunk, all of 512 bytes, so that a write of
 * one changes no other. Numbers are little endian; the last 4 bytes of each are the CRC-32 of the others. A damaged or
 * empty entry says that nothing is there.
 *
 * header: 8 magic, 8 size of the blob, 4 flags, 4 length of the digest, 160 digest
 * entry:  8 bits of parts that are there, 8 bits of parts whose CRC is known, 64 x 4 CRC-32 of the parts
 */
export const ENTRY = 512;

const MAGIC = Buffer.from('aenvlaz1', 'latin1');
const FLAG_VERIFIED = 1;
const MAX_DIGEST = 160;

export interface IndexHeader {
  readonly digest: string;
  readonly size: number;
  /** the whole blob was once seen to have its digest */
  readonly verified: boolean;
}

export function encodeHeader(header: IndexHeader): Buffer {
  const block = Buffer.alloc(ENTRY);
  MAGIC.copy(block);
  block.writeBigUInt64LE(BigInt(header.size), 8);
  block.writeUInt32LE(header.verified ? FLAG_VERIFIED : 0, 16);
  block.writeUInt32LE(header.digest.length, 20);
  block.write(header.digest, 24, 'latin1');
  return sealed(block);
}

/** @returns undefined for what is no header */
export function decodeHeader(block: Buffer): IndexHeader | undefined {
  if (!isWhole(block) || !block.subarray(0, 8).equals(MAGIC)) return undefined;
  const size = Number(block.readBigUInt64LE(8));
  const length = block.readUInt32LE(20);
  if (size > MAX_BLOB || length > MAX_DIGEST) return undefined;
  const digest = block.toString('latin1', 24, 24 + length);
  if (parseDigest(digest) === undefined) return undefined;
  return { digest, size, verified: (block.readUInt32LE(16) & FLAG_VERIFIED) !== 0 };
}

/** What is known of the parts of a chunk. */
export interface ChunkParts {
  /** 1 for a part that is in the file */
  readonly present: Uint8Array;
  /** 1 for a part whose CRC is known, be it there or not */
  readonly known: Uint8Array;
  readonly crcs: Uint32Array;
}

export function emptyParts(): ChunkParts {
  return {
    present: new Uint8Array(PARTS_PER_CHUNK),
    known: new Uint8Array(PARTS_PER_CHUNK),
    crcs: new Uint32Array(PARTS_PER_CHUNK),
  };
}

export function encodeEntry(parts: ChunkParts): Buffer {
  const block = Buffer.alloc(ENTRY);
  for (let part = 0; part < PARTS_PER_CHUNK; part++) {
    if (parts.present[part] === 1) setBit(block, 0, part);
    if (parts.known[part] === 1) setBit(block, 8, part);
    block.writeUInt32LE(parts.crcs[part] ?? 0, 16 + 4 * part);
  }
  return sealed(block);
}

/** @returns undefined for a damaged or empty entry */
export function decodeEntry(block: Buffer): ChunkParts | undefined {
  if (!isWhole(block)) return undefined;
  const parts = emptyParts();
  for (let part = 0; part < PARTS_PER_CHUNK; part++) {
    const known = hasBit(block, 8, part);
    parts.known[part] = known ? 1 : 0;
    // A part without a CRC could not be checked.
    parts.present[part] = known && hasBit(block, 0, part) ? 1 : 0;
    parts.crcs[part] = block.readUInt32LE(16 + 4 * part);
  }
  return parts;
}

export function chunksOf(size: number): number {
  return Math.ceil(size / CHUNK);
}

function setBit(block: Buffer, at: number, bit: number): void {
  block[at + (bit >> 3)] = (block[at + (bit >> 3)] ?? 0) | (1 << (bit & 7));
}

function hasBit(block: Buffer, at: number, bit: number): boolean {
  return ((block[at + (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0;
}

/** An inverted CRC, so that a block of zeros is not whole. */
function sealed(block: Buffer): Buffer {
  block.writeUInt32LE(~crc32(block.subarray(0, ENTRY - 4)) >>> 0, ENTRY - 4);
  return block;
}

function isWhole(block: Buffer): boolean {
  return block.length === ENTRY && block.readUInt32LE(ENTRY - 4) === ~crc32(block.subarray(0, ENTRY - 4)) >>> 0;
}
