import type { BlobSource } from './contract.ts';
import { checkRange } from './range.ts';

/** Bytes in memory as a blob. */
export function memorySource(bytes: Uint8Array): BlobSource {
  const source: BlobSource = {
    size: bytes.length,
    readSync(target, offset) {
      checkRange(source, target, offset);
      target.set(bytes.subarray(offset, offset + target.length));
      return true;
    },
    async read(target, offset) {
      source.readSync(target, offset);
    },
    async close() {},
  };
  return source;
}
