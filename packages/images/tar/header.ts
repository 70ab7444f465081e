import { parseNumber } from './numbers.ts';

/** One 512-byte header block as it stands. Strings hold one byte a character (latin1), so that any name survives. */
export interface TarHeader {
  readonly name: string;
  readonly linkName: string;
  /** the type flag as a character, `0` for NUL */
  readonly flag: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  /** seconds since the epoch */
  readonly mtime: number;
  readonly devMajor: number;
  readonly devMinor: number;
}

export const BLOCK = 512;

/**
 * Reads a header in the v7, ustar or GNU form.
 * @returns a message instead of a header when the block is none
 */
export function parseHeader(block: Buffer): TarHeader | { readonly problem: string } {
  if (!checksumFits(block)) return { problem: 'header checksum does not fit' };
  const numbers = {
    mode: parseNumber(block.subarray(100, 108)),
    uid: parseNumber(block.subarray(108, 116)),
    gid: parseNumber(block.subarray(116, 124)),
    size: parseNumber(block.subarray(124, 136)),
    mtime: parseNumber(block.subarray(136, 148)),
  };
  const { mode, uid, gid, size, mtime } = numbers;
  if (mode === undefined || uid === undefined || gid === undefined || size === undefined || mtime === undefined) {
    const bad = Object.entries(numbers).find(([, value]) => value === undefined);
    return { problem: `header field ${bad?.[0] ?? ''} is not a number` };
  }
  if (size < 0 || uid < 0 || gid < 0) return { problem: 'header has a negative size or owner' };

  const magic = block.toString('latin1', 257, 263);
  const known = magic === 'ustar\0' || magic === 'ustar ';
  // Only POSIX has a prefix there; GNU tar keeps times in the same place.
  const prefix = magic === 'ustar\0' ? text(block, 345, 500) : '';
  const name = text(block, 0, 100);
  const flag = block[156] === 0 ? '0' : String.fromCharCode(block[156] ?? 0);
  const devMajor = known ? parseNumber(block.subarray(329, 337)) : 0;
  const devMinor = known ? parseNumber(block.subarray(337, 345)) : 0;
  const isDevice = flag === '3' || flag === '4';
  if (isDevice && (devMajor === undefined || devMinor === undefined))
    return { problem: 'device number is not a number' };
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    linkName: text(block, 157, 257),
    flag,
    mode,
    uid,
    gid,
    size,
    mtime,
    devMajor: devMajor ?? 0,
    devMinor: devMinor ?? 0,
  };
}

export function isZeroBlock(block: Buffer): boolean {
  // Members begin with their names.
  return block[0] === 0 && block.every((byte) => byte === 0);
}

/** Old programs summed signed bytes; both are accepted, as GNU tar does. */
function checksumFits(block: Buffer): boolean {
  const stored = parseNumber(block.subarray(148, 156));
  let unsigned = 8 * 0x20;
  let signed = 8 * 0x20;
  for (let at = 0; at < BLOCK; at++) {
    if (at >= 148 && at < 156) continue;
    const byte = block[at] ?? 0;
    unsigned += byte;
    signed += byte < 0x80 ? byte : byte - 0x100;
  }
  return stored === unsigned || stored === signed;
}

function text(block: Buffer, start: number, end: number): string {
  const field = block.subarray(start, end);
  const stop = field.indexOf(0);
  return field.toString('latin1', 0, stop === -1 ? field.length : stop);
}
