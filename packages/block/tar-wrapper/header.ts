/** Bytes of a tar header and of its unit. */
export const TAR_BLOCK = 512;

/** What the wrapper needs of a tar header. */
export interface TarHeader {
  readonly size: number;
  readonly typeFlag: string;
}

/** @returns undefined if the bytes are no ustar header, or its checksum is wrong */
export function parseTarHeader(block: Buffer): TarHeader | undefined {
  if (block.length < TAR_BLOCK || block.toString('latin1', 257, 262) !== 'ustar') return undefined;
  if (block.toString('latin1', 263, 265) !== '00') return undefined;
  const checksum = octal(block, 148, 8);
  const size = octal(block, 124, 12);
  if (checksum === undefined || size === undefined || checksum !== checksumOf(block)) return undefined;
  return { size, typeFlag: String.fromCharCode(block[156] ?? 0) };
}

/** Header of a file in the form that the reference writes: numbers right-aligned with blanks. */
export function encodeTarHeader(name: string, typeFlag: 'x' | '0', size: number): Buffer {
  const block = Buffer.alloc(TAR_BLOCK);
  block.write(name, 0, 100, 'latin1');
  if (typeFlag === '0') {
    for (const [value, at] of [
      [0o100644, 100],
      [0, 108],
      [0, 116],
    ] as const) {
      block.write(`${value.toString(8).padStart(6)} `, at, 'latin1');
    }
    block.write(`${'0'.padStart(11)} `, 136, 'latin1');
    block.write('root', 265, 'latin1');
    block.write('root', 297, 'latin1');
  }
  block.write(`${size.toString(8).padStart(11)} `, 124, 'latin1');
  block.write(typeFlag, 156, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  block.write(`${checksumOf(block).toString(8).padStart(6)} `, 148, 'latin1');
  return block;
}

/** Sum of all bytes, those of the checksum itself taken as blanks. */
function checksumOf(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let i = 0; i < TAR_BLOCK; i++) if (i < 148 || i >= 156) sum += block[i] ?? 0;
  return sum;
}

function octal(block: Buffer, at: number, length: number): number | undefined {
  const text = block
    .toString('latin1', at, at + length)
    .replaceAll('\0', ' ')
    .trim();
  if (!/^[0-7]{0,15}$/.test(text)) return undefined;
  return text === '' ? 0 : Number.parseInt(text, 8);
}
