import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { rawCrc32c } from './crc32c.ts';

/** Bytes of the header and of the trailer of a ZFile (containerd/overlaybd, `src/overlaybd/zfile`). */
export const ZFILE_HEADER_SIZE = 512;
export const CRC_SIZE = 4;
/** Seed of the CRC of a block. */
export const BLOCK_SEED = 100_007;

const MIN_BLOCK_SIZE = 4096;
const MAX_BLOCK_SIZE = 65_536;

export type Compression = 'lz4' | 'zstd';

export interface ZFileHeader {
  readonly isTrailer: boolean;
  /** The header has the final values; else only the trailer has. */
  readonly isFinal: boolean;
  /** The checksums of header and jump table are to be looked at. */
  readonly hasDigests: boolean;
  /** bytes from the start of the file */
  readonly tableOffset: number;
  readonly blocks: number;
  /** bytes, unpacked */
  readonly originalSize: number;
  readonly tableCrc: number;
  readonly blockSize: number;
  readonly compression: Compression;
  /** bytes between header and first block */
  readonly dictionarySize: number;
  /** each block is followed by its CRC */
  readonly verify: boolean;
}

const STRUCT_SIZE = 96;
const MAGIC = Buffer.from('5a46696c6500010074756a692e79796640416c6962616261', 'hex');

const HEADER_BIT = 1;
const DATA_FILE_BIT = 2;
const SEALED_BIT = 4;
const OVERWRITTEN_BIT = 8;
const DIGEST_BIT = 16;

const HEADER_FLAGS = HEADER_BIT | DATA_FILE_BIT | OVERWRITTEN_BIT | DIGEST_BIT;
const TRAILER_FLAGS = DATA_FILE_BIT | SEALED_BIT | DIGEST_BIT;
const ALGORITHMS: readonly (Compression | undefined)[] = [undefined, 'lz4', 'zstd'];

export function hasZFileMagic(bytes: Uint8Array): boolean {
  return bytes.length >= MAGIC.length && MAGIC.equals(bytes.subarray(0, MAGIC.length));
}

/** A header with its final values, or a trailer. Dictionaries are not written. */
export function encodeZFileHeader(h: Omit<ZFileHeader, 'isFinal' | 'hasDigests' | 'dictionarySize'>): Buffer {
  const bytes = Buffer.alloc(ZFILE_HEADER_SIZE);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(STRUCT_SIZE, 24);
  bytes.writeUInt32LE(h.isTrailer ? TRAILER_FLAGS : HEADER_FLAGS, 32);
  bytes.writeBigUInt64LE(BigInt(h.tableOffset), 40);
  bytes.writeBigUInt64LE(BigInt(h.blocks), 48);
  bytes.writeBigUInt64LE(BigInt(h.originalSize), 56);
  bytes.writeUInt32LE(h.tableCrc, 64);
  bytes.writeUInt32LE(h.blockSize, 72);
  bytes[76] = ALGORITHMS.indexOf(h.compression);
  bytes[88] = h.verify ? 1 : 0;
  bytes.writeUInt32LE(rawCrc32c(bytes), 28);
  return bytes;
}

/**
 * Reads a header or trailer. Old files have garbage in reserved and in unused fields, so only what counts is looked at;
 * checksums only where the flags say that there are any.
 * @throws AenvError `layer_corrupt`
 */
export function decodeZFileHeader(given: Uint8Array): ZFileHeader {
  if (given.length < ZFILE_HEADER_SIZE || !hasZFileMagic(given)) throw corrupt('no ZFile header where one must be');
  const bytes = Buffer.from(given.subarray(0, ZFILE_HEADER_SIZE));
  const flags = bytes.readUInt32LE(32);
  const hasDigests = (flags & DIGEST_BIT) !== 0;
  if (hasDigests) {
    const digest = bytes.readUInt32LE(28);
    bytes.writeUInt32LE(0, 28);
    if (rawCrc32c(bytes) !== digest) throw corrupt('the checksum of a ZFile header does not match');
  }
  const compression = ALGORITHMS[bytes[76] ?? 0];
  if (compression === undefined) throw corrupt(`ZFile compression ${bytes[76]} is not known`);
  const blockSize = bytes.readUInt32LE(72);
  if (blockSize < MIN_BLOCK_SIZE || blockSize > MAX_BLOCK_SIZE || (blockSize & (blockSize - 1)) !== 0) {
    throw corrupt(`ZFile blocks of ${blockSize} bytes`);
  }
  if (bytes[78] !== 0 && bytes.readUInt32LE(84) !== 0) throw corrupt('ZFiles with a dictionary are not supported');
  return {
    isTrailer: (flags & HEADER_BIT) === 0,
    isFinal: (flags & OVERWRITTEN_BIT) !== 0,
    hasDigests,
    tableOffset: numberAt(bytes, 40),
    blocks: numberAt(bytes, 48),
    originalSize: numberAt(bytes, 56),
    tableCrc: bytes.readUInt32LE(64),
    blockSize,
    compression,
    dictionarySize: bytes.readUInt32LE(84),
    verify: bytes[88] === 1,
  };
}

/** May be rounded beyond 2^53: whoever uses it compares it with the size of the file. */
function numberAt(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}

function corrupt(message: string): AenvError {
  return new AenvError('layer_corrupt', message);
}
