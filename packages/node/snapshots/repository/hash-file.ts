import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { codeOf, ioError } from '@aenv/block/blob/io-error.ts';
import type { Artefact } from '../contract.ts';
import { corrupt } from './corrupt.ts';

const CHUNK = 256 * 1024;

export type FileSum = Pick<Artefact, 'sizeBytes' | 'digest'>;

/**
 * One piece is hashed while the next one is read. The buffers are used over and over: memory that was never touched costs more
 * than to read into it and to hash it.
 * @throws AenvError `io_failed`, with `cause` the host's error
 */
export async function hashFile(path: string): Promise<FileSum> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  try {
    await using file = await open(path);
    const read = async (buffer: Buffer) => buffer.subarray(0, (await file.read(buffer, 0, CHUNK, null)).bytesRead);
    let [free, next] = [Buffer.allocUnsafeSlow(CHUNK), Buffer.allocUnsafeSlow(CHUNK)];
    for (let bytes = await read(next); bytes.length > 0; ) {
      const following = read(free);
      hash.update(bytes);
      sizeBytes += bytes.length;
      [free, next] = [next, free];
      bytes = await following;
    }
  } catch (error) {
    throw ioError(error, path);
  }
  return { sizeBytes, digest: `sha256:${hash.digest('hex')}` };
}

/** @throws AenvError `snapshot_corrupt` if the file is missing or not what it was, `io_failed` */
export async function checkFile(path: string, expected: FileSum, artefact: string): Promise<void> {
  let found: FileSum;
  try {
    found = await hashFile(path);
  } catch (error) {
    if (error instanceof Error && codeOf(error.cause) === 'ENOENT') throw corrupt(artefact, 'it is missing', error);
    throw error;
  }
  if (found.sizeBytes !== expected.sizeBytes) {
    throw corrupt(artefact, `it has ${found.sizeBytes} bytes, not ${expected.sizeBytes}`);
  }
  if (found.digest !== expected.digest) throw corrupt(artefact, 'its digest does not hold');
}

/** What is in a file is on the disk. @throws AenvError `io_failed` */
export async function syncFile(path: string): Promise<void> {
  try {
    await using file = await open(path);
    await file.sync();
  } catch (error) {
    throw ioError(error, path);
  }
}
