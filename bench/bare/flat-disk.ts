import { open } from 'node:fs/promises';
import { fileLayer, LayerPool } from '@aenv/block/layers/stack/pool.ts';

const PIECE = 2 ** 20;

/** Writes what layers have as one plain sparse file, which QEMU reads without any of our code. */
export async function writeFlatDisk(path: string, layers: readonly string[], signal: AbortSignal): Promise<void> {
  const stack = await new LayerPool().openStack(layers.map(fileLayer), signal);
  try {
    await using file = await open(path, 'wx');
    await file.truncate(stack.virtualSize);
    const buffer = Buffer.allocUnsafe(PIECE);
    for (const range of stack.dataRanges(0, stack.virtualSize)) {
      for (let done = 0; done < range.length; done += PIECE) {
        const piece = buffer.subarray(0, Math.min(PIECE, range.length - done));
        await stack.read(piece, range.offset + done, signal);
        await file.write(piece, 0, piece.length, range.offset + done);
      }
    }
  } finally {
    await stack.close();
  }
}
