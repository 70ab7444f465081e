import type { BlobSource } from './contract.ts';
import { checkRange } from './range.ts';

/** A part of a blob as a blob. Closing it closes the whole. */
export function sliceOf(whole: BlobSource, start: number, size: number): BlobSource {
  if (start < 0 || size < 0 || start + size > whole.size) throw new RangeError('slice outside of its blob');
  const distrust = whole.distrust?.bind(whole);
  const slice: BlobSource = {
    size,
    readSync(target, offset) {
      checkRange(slice, target, offset);
      return whole.readSync(target, start + offset);
    },
    async read(target, offset, signal) {
      checkRange(slice, target, offset);
      await whole.read(target, start + offset, signal);
    },
    ...(distrust === undefined
      ? {}
      : { distrust: (offset: number, length: number) => distrust(start + offset, length) }),
    close: () => whole.close(),
  };
  return slice;
}
