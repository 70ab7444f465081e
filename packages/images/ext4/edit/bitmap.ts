import { BLOCK_SIZE } from '../model/geometry.ts';

/** Nothing in use of `size`; what is behind that counts as used. */
export function emptyBitmap(size: number): Buffer {
  const bitmap = Buffer.alloc(BLOCK_SIZE);
  for (let at = size; at < 8 * BLOCK_SIZE; at++) bitmap[at >> 3] = (bitmap[at >> 3] ?? 0) | (1 << (at & 7));
  return bitmap;
}

/** The first free one from a place on. */
export function findFree(bitmap: Buffer, size: number, from: number): number | undefined {
  for (let at = from; at < size; at++) if ((((bitmap[at >> 3] ?? 0xff) >> (at & 7)) & 1) === 0) return at;
  return undefined;
}

/** Where so many in a row are free, from a place on. */
export function findRun(bitmap: Buffer, size: number, count: number, from = 0): number | undefined {
  let length = 0;
  for (let at = from; at < size; at++) {
    length = (((bitmap[at >> 3] ?? 0xff) >> (at & 7)) & 1) === 0 ? length + 1 : 0;
    if (length === count) return at - count + 1;
  }
  return undefined;
}
