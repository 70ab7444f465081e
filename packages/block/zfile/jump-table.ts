import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { CRC_SIZE, ZFILE_HEADER_SIZE, type ZFileHeader } from './header.ts';

/** Most blocks of a ZFile: 64 GiB in blocks of 4 KiB. */
export const MAX_BLOCKS = 2 ** 24;
/** Blocks for which one start is kept. */
const GROUP = 32;

/** Where the blocks of a ZFile are: the stored length of each, and the start of every 32nd. */
export class JumpTable {
  readonly #lengths: Uint32Array;
  readonly #starts: Float64Array;

  constructor(lengths: Uint32Array, starts: Float64Array) {
    this.#lengths = lengths;
    this.#starts = starts;
  }

  get blocks(): number {
    return this.#lengths.length;
  }

  /** Stored length of a block, its CRC included. */
  lengthOf(block: number): number {
    return this.#lengths[block] ?? 0;
  }

  /** Where a block starts in the file. */
  startOf(block: number): number {
    let i = block - (block % GROUP);
    let start = this.#starts[i / GROUP] ?? 0;
    for (; i < block; i++) start += this.#lengths[i] as number;
    return start;
  }
}

/** Checks the numbers of a header that the table depends on. @returns the size of the table in bytes */
export function tableSize(header: ZFileHeader, fileSize: number): number {
  const { blocks, blockSize, originalSize, tableOffset, dictionarySize } = header;
  if (blocks > MAX_BLOCKS) throw corrupt(`it has ${blocks} blocks`);
  if (blocks !== Math.ceil(originalSize / blockSize)) throw corrupt('the number of its blocks does not fit its size');
  const size = blocks * 4;
  if (tableOffset < ZFILE_HEADER_SIZE + dictionarySize || tableOffset + size > fileSize - ZFILE_HEADER_SIZE) {
    throw corrupt('its jump table is outside of the file');
  }
  return size;
}

/**
 * @param bytes the table as it is in the file: one 32-bit length for each block
 * @throws AenvError `layer_corrupt` if a length is impossible, or they do not add up to the size of the data
 */
export function parseJumpTable(bytes: Uint8Array, header: ZFileHeader): JumpTable {
  const { blocks, blockSize, tableOffset, dictionarySize, verify } = header;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lengths = new Uint32Array(blocks);
  const starts = new Float64Array(Math.ceil(blocks / GROUP));
  const least = verify ? CRC_SIZE + 1 : 1;
  const most = maxStoredLength(blockSize) + (verify ? CRC_SIZE : 0);
  let at = ZFILE_HEADER_SIZE + dictionarySize;
  for (let i = 0; i < blocks; i++) {
    if (i % GROUP === 0) starts[i / GROUP] = at;
    const length = view.getUint32(i * 4, true);
    if (length < least || length > most) throw corrupt(`block ${i} is said to have ${length} bytes`);
    lengths[i] = length;
    at += length;
  }
  if (at > tableOffset) throw corrupt('its blocks are longer than its data');
  return new JumpTable(lengths, starts);
}

/** What no compressor exceeds, even for noise. */
function maxStoredLength(blockSize: number): number {
  return blockSize + (blockSize >>> 6) + 64;
}

function corrupt(problem: string): AenvError {
  return new AenvError('layer_corrupt', `the ZFile cannot be read: ${problem}`);
}
