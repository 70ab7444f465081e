import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Tree } from '../model/tree.ts';
import { decodeTree } from './decode.ts';
import { encodeTree } from './encode.ts';

const HASH = 32;
const MAX_BYTES = 2 ** 31 - 1;
const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Keeps a tree beside its layer, so that a later layer needs no archive of the layers below. */
export async function saveTree(path: string, tree: Tree): Promise<void> {
  const data = encodeTree(tree);
  const hash = createHash('sha256').update(data).digest();
  const packed = await compress(data, { params: { [constants.ZSTD_c_compressionLevel]: 1 } });
  await writeDurable(path, Buffer.concat([hash, packed]));
}

/** @returns undefined when the file is not there, or not what was written */
export async function loadTree(path: string): Promise<Tree | undefined> {
  try {
    const data = await readWhole(path);
    return data === undefined ? undefined : decodeTree(data);
  } catch {
    // It can be made again from the archives, so the reason does not matter.
    return undefined;
  }
}

/** Whether the file is there, and what was written, be it by another version. */
export async function isWholeTree(path: string): Promise<boolean> {
  return await readWhole(path).then(
    (data) => data !== undefined,
    () => false,
  );
}

async function readWhole(path: string): Promise<Buffer | undefined> {
  const file = await readFile(path);
  const data = await decompress(file.subarray(HASH), { maxOutputLength: MAX_BYTES });
  const hash = createHash('sha256').update(data).digest();
  return hash.equals(file.subarray(0, HASH)) ? data : undefined;
}
