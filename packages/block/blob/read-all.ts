import type { BlobSource } from './contract.ts';

/** A range of a blob in memory of its own. The caller has bounded `length`. */
export async function readAll(
  source: BlobSource,
  offset: number,
  length: number,
  signal?: AbortSignal,
): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  if (length > 0 && !source.readSync(bytes, offset)) await source.read(bytes, offset, signal);
  return bytes;
}
