import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** Magic number of the LZ4 legacy frame, which the kernel's build uses (`lz4 -l`). */
export const LZ4_LEGACY_MAGIC = 0x184c2102;

/**
 * Unpacks an LZ4 legacy frame of known size: after the magic number blocks of [size u32][LZ4 block], each of which
 * stands for itself. Format: the LZ4 project's lz4_Frame_format.md (legacy frame) and lz4_Block_format.md.
 * @throws AenvError `asset_failed` when the bytes are not such a frame or give another size
 */
export function unpackLz4Legacy(frame: Buffer, size: number): Buffer {
  const out = Buffer.allocUnsafe(size);
  let written = 0;
  let at = 4;
  while (at + 4 <= frame.length && written < size) {
    const end = at + 4 + frame.readUInt32LE(at);
    if (end > frame.length) throw broken('a block is cut off');
    written = unpackBlock(frame, at + 4, end, out, written);
    at = end;
  }
  if (written !== size) throw broken(`${written} bytes instead of ${size}`);
  return out;
}

/** One block: sequences of literals and of matches within this block's own output. Returns the new end of `out`. */
function unpackBlock(source: Buffer, start: number, end: number, out: Buffer, outStart: number): number {
  let at = start;
  let to = outStart;
  const length = (nibble: number): number => {
    let total = nibble;
    for (let byte = 255; nibble === 15 && byte === 255; total += byte) {
      if (at >= end) throw broken('a length is cut off');
      byte = source[at++] ?? 0;
    }
    return total;
  };
  while (at < end) {
    const token = source[at++] ?? 0;
    const literals = length(token >> 4);
    if (at + literals > end || to + literals > out.length) throw broken('literals beyond the end');
    source.copy(out, to, at, at + literals);
    at += literals;
    to += literals;
    if (at === end) return to;
    if (at + 2 > end) throw broken('an offset is cut off');
    const offset = source.readUInt16LE(at);
    at += 2;
    const matched = length(token & 15) + 4;
    if (offset === 0 || offset > to - outStart || to + matched > out.length) throw broken('a match beyond the ends');
    if (offset >= matched) out.copyWithin(to, to - offset, to - offset + matched);
    else for (let i = 0; i < matched; i += 1) out[to + i] = out[to + i - offset] ?? 0;
    to += matched;
  }
  return to;
}

function broken(why: string): AenvError {
  return new AenvError('asset_failed', `the LZ4 data of the kernel is damaged: ${why}`);
}
