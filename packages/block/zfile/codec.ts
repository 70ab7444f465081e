import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Compression } from './header.ts';
import { lz4Decode } from './lz4-decode.ts';
import { Lz4Encoder } from './lz4-encode.ts';

/** Decodes a block to exactly fill `target`. @returns false if it does not */
export type BlockDecoder = (stored: Uint8Array, target: Uint8Array) => boolean;
/** @returns the stored form; valid until the next call */
export type BlockEncoder = (block: Uint8Array) => Uint8Array;

/** Blocks have at most 64 KiB; a frame that wants a larger window than this is none of ours or the reference's. */
const MAX_WINDOW_LOG = 22;
const ZSTD_LEVEL = 3;

export function decoderOf(compression: Compression): BlockDecoder {
  return compression === 'lz4' ? lz4Decode : zstdDecode;
}

export function encoderOf(compression: Compression): BlockEncoder {
  if (compression === 'zstd') {
    return (block) => zstdCompressSync(block, { params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL } });
  }
  const encoder = new Lz4Encoder();
  return (block) => encoder.encode(block);
}

function zstdDecode(stored: Uint8Array, target: Uint8Array): boolean {
  try {
    const block = zstdDecompressSync(stored, {
      maxOutputLength: target.length,
      params: { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_LOG },
    });
    if (block.length !== target.length) return false;
    target.set(block);
    return true;
  } catch {
    return false;
  }
}
