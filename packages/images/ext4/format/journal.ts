import { BLOCK_SIZE } from '../model/geometry.ts';

/** The first block of an empty journal (kernel documentation, "Journal (jbd2)"); numbers are big-endian. */
export function encodeJournal(blocks: number, uuid: Buffer): Buffer {
  const block = Buffer.alloc(BLOCK_SIZE);
  block.writeUInt32BE(0xc03b3998, 0);
  block.writeUInt32BE(4, 4);
  block.writeUInt32BE(BLOCK_SIZE, 12);
  block.writeUInt32BE(blocks, 16);
  block.writeUInt32BE(1, 20);
  block.writeUInt32BE(1, 24);
  uuid.copy(block, 48);
  block.writeUInt32BE(1, 64);
  return block;
}
