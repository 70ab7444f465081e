import { type FileHandle, open, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { isCode } from '../../errors/is-code.ts';
import { PART, PARTS_PER_CHUNK, partLength } from '../geometry.ts';
import { chunkName, folderName, INDEX } from './blob-folder.ts';
import { chunksOf, decodeEntry, decodeHeader, ENTRY } from './index-entry.ts';

export interface DamagedFile {
  readonly path: string;
  readonly why: string;
}

/**
 * Reads what is kept of a blob and compares it with the index, as it is when it is read: a cache may be at work. What is
 * damaged is never served; it is fetched again.
 * @param folder of the blob
 */
export async function verifyCachedBlob(
  folder: string,
): Promise<{ readonly bytes: number; readonly damaged: readonly DamagedFile[] }> {
  const indexPath = join(folder, INDEX);
  const damaged: DamagedFile[] = [];
  let bytes = 0;
  const index = await readOrNothing(indexPath);
  if (index === undefined) return { bytes, damaged };
  const header = decodeHeader(index.subarray(0, ENTRY));
  if (header === undefined || basename(folder) !== folderName(header.digest)) {
    return { bytes, damaged: [{ path: indexPath, why: 'its header does not hold' }] };
  }
  for (let number = 0; number < chunksOf(header.size); number++) {
    const at = ENTRY * (number + 1);
    const block = index.subarray(at, at + ENTRY);
    const entry = decodeEntry(block);
    if (entry === undefined) {
      if (block.some((byte) => byte !== 0)) damaged.push({ path: indexPath, why: `its entry ${number} does not hold` });
      continue;
    }
    const path = join(folder, chunkName(number));
    const wrong: number[] = [];
    await using file = await openOrNothing(path);
    for (let part = 0; part < PARTS_PER_CHUNK; part++) {
      if (entry.present[part] !== 1) continue;
      const size = partLength(number * PARTS_PER_CHUNK + part, header.size);
      const data = Buffer.alloc(size);
      const { bytesRead = 0 } = (await file?.read(data, 0, size, part * PART)) ?? {};
      bytes += bytesRead;
      if (bytesRead !== size || crc32(data) !== entry.crcs[part]) wrong.push(part);
    }
    if (wrong.length > 0 && (await isStill(indexPath, at, block))) {
      damaged.push({ path, why: `the checksum of part ${wrong.join(', ')} does not hold` });
    }
  }
  return { bytes, damaged };
}

/** Whether the index says what it said; otherwise the chunk was evicted or fetched anew meanwhile. */
async function isStill(indexPath: string, at: number, block: Buffer): Promise<boolean> {
  const now = await readOrNothing(indexPath);
  return now?.subarray(at, at + ENTRY).equals(block) === true;
}

function readOrNothing(path: string): Promise<Buffer | undefined> {
  return readFile(path).catch(nothing);
}

function openOrNothing(path: string): Promise<FileHandle | undefined> {
  return open(path).catch(nothing);
}

function nothing(error: unknown): undefined {
  if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
  throw error;
}
