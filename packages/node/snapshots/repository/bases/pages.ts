import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { setImmediate as breathe } from 'node:timers/promises';
import { ioError } from '@aenv/block/blob/io-error.ts';
import { writeFully } from '@aenv/platform/files/write-fully.ts';
import { CHUNK_BYTES } from './memory-base.ts';

const ZEROS = Buffer.alloc(CHUNK_BYTES);
const SLICE = 2 ** 20;
/** A hole that is smaller costs more in extents of the file than it saves. */
const HOLE = 64 * 1024;

/** At most a chunk of bytes. */
export function isZero(bytes: Uint8Array): boolean {
  return ZEROS.compare(bytes, 0, bytes.length, 0, bytes.length) === 0;
}

/** 64 hex digits. Others go first between slices of half a millisecond; WebCrypto copies all of it and takes five times as long. */
export async function sha256(bytes: Uint8Array): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += SLICE) {
    if (at > 0) await breathe();
    hash.update(bytes.subarray(at, at + SLICE));
  }
  return hash.digest('hex');
}

/** @throws AenvError `io_failed`; RangeError if the file ends before */
export async function readFully(file: FileHandle, target: Uint8Array, offset: number, path: string): Promise<void> {
  try {
    for (let done = 0; done < target.length; ) {
      const { bytesRead } = await file.read(target, done, target.length - done, offset + done);
      if (bytesRead === 0) throw new RangeError(`it ends before byte ${offset + target.length}`);
      done += bytesRead;
    }
  } catch (error) {
    throw ioError(error, path);
  }
}

/** @throws AenvError `no_space`, `io_failed` */
export async function writeAt(file: FileHandle, bytes: Uint8Array, offset: number, path: string): Promise<void> {
  try {
    await writeFully(file, bytes, offset);
  } catch (error) {
    throw ioError(error, path);
  }
}

/** Writes into a file of holes and leaves holes where the bytes are zero: 64 KiB at least, at such places. */
export async function writeSparse(file: FileHandle, bytes: Uint8Array, offset: number, path: string): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    let to = from;
    while (to < bytes.length && !isZero(bytes.subarray(to, to + HOLE))) to += HOLE;
    to = Math.min(to, bytes.length);
    if (to > from) await writeAt(file, bytes.subarray(from, to), offset + from, path);
    from = to + HOLE;
  }
}
