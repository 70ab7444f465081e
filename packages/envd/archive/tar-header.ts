// The ustar header of POSIX.1-2024 (pax), https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html

export const BLOCK = 512;

export type EntryType = 'file' | 'link' | 'symlink' | 'character-device' | 'block-device' | 'directory' | 'fifo';

/** One header as it stands in the archive, before PAX records are applied. Names are bytes as latin1 text. */
export interface RawHeader {
  readonly name: string;
  readonly mode: number;
  readonly size: number;
  /** unix seconds */
  readonly mtime: number;
  readonly typeFlag: string;
  readonly linkName: string;
}

export const TYPE_FLAGS: Readonly<Record<EntryType, string>> = {
  file: '0',
  link: '1',
  symlink: '2',
  'character-device': '3',
  'block-device': '4',
  directory: '5',
  fifo: '6',
};

/** The padding after `size` bytes of content. */
export function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

/** A header block. What does not fit into its fields belongs into PAX records before it. */
export function encodeHeader(header: RawHeader): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(header.name.slice(0, 100), 0, 'latin1');
  writeOctal(block, header.mode & 0o7777, 100, 8);
  writeOctal(block, 0, 108, 8);
  writeOctal(block, 0, 116, 8);
  writeOctal(block, header.size, 124, 12);
  writeOctal(block, header.mtime, 136, 12);
  block.write(header.typeFlag, 156, 'latin1');
  block.write(header.linkName.slice(0, 100), 157, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  block.write(`${checksum(block).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Undefined for a block that is no header; `end` for the zero block at the end. */
export function decodeHeader(block: Buffer): RawHeader | 'end' | undefined {
  if (block.every((byte) => byte === 0)) return 'end';
  if (readNumber(block, 148, 8) !== checksum(block)) return undefined;
  const size = readNumber(block, 124, 12);
  const mtime = readNumber(block, 136, 12);
  const mode = readNumber(block, 100, 8);
  if (size === undefined || mtime === undefined || mode === undefined || size < 0) return undefined;
  const name = readText(block, 0, 100);
  const isUstar = block.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isUstar ? readText(block, 345, 155) : '';
  const typeFlag = block.toString('latin1', 156, 157);
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    mode: mode & 0o7777,
    size,
    mtime,
    typeFlag: typeFlag === '\0' ? '0' : typeFlag,
    linkName: readText(block, 157, 100),
  };
}

/** The sum of all bytes, the checksum field itself taken as spaces. */
function checksum(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let i = 0; i < BLOCK; i++) if (i < 148 || i >= 156) sum += block[i] ?? 0;
  return sum;
}

function writeOctal(block: Buffer, value: number, offset: number, length: number): void {
  const digits = Math.max(0, Math.floor(value)).toString(8);
  // A number that is too long is in a PAX record.
  block.write(digits.length < length ? digits.padStart(length - 1, '0') : '0', offset, 'latin1');
}

/** Octal text, or the binary form of GNU for what octal cannot hold. */
function readNumber(block: Buffer, offset: number, length: number): number | undefined {
  const first = block[offset] ?? 0;
  if (first & 0x80) {
    let value = first === 0xff ? -1n : BigInt(first & 0x7f);
    for (let i = offset + 1; i < offset + length; i++) value = (value << 8n) | BigInt(block[i] ?? 0);
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : undefined;
  }
  const text = readText(block, offset, length).trim();
  if (text === '') return 0;
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : undefined;
}

function readText(block: Buffer, offset: number, length: number): string {
  const text = block.toString('latin1', offset, offset + length);
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}
