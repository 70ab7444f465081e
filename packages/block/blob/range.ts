import type { BlobSource } from './contract.ts';

/** @throws RangeError if the range is not inside the blob: a fault of whoever asks */
export function checkRange(blob: Pick<BlobSource, 'size'>, target: Uint8Array, offset: number): void {
  if (offset < 0 || offset + target.length > blob.size || !Number.isSafeInteger(offset)) {
    throw new RangeError(`bytes ${offset}..${offset + target.length} are outside of a blob of ${blob.size}`);
  }
}
