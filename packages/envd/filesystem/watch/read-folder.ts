import type { Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { isStaging } from '../../files/staging.ts';
import { errnoOf } from '../errors.ts';

export interface FoundEntry {
  /** one byte in each character */
  readonly name: string;
  readonly isFolder: boolean;
  /** of a file, and only when asked for */
  readonly hasContent: boolean;
}

/** What is in a folder, except unfinished uploads; undefined when it has vanished. */
export async function readFolder(folder: Buffer, withContent: boolean): Promise<FoundEntry[] | undefined> {
  let entries: Dirent<Buffer>[];
  try {
    entries = await readdir(folder, { encoding: 'buffer', withFileTypes: true });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
  const found: FoundEntry[] = [];
  for (const entry of entries) {
    const name = entry.name.toString('latin1');
    if (isStaging(name)) continue;
    const path = Buffer.concat([folder, Buffer.from('/'), entry.name]);
    const size = withContent && entry.isFile() ? (await lstat(path).catch(() => undefined))?.size : 0;
    found.push({ name, isFolder: entry.isDirectory(), hasContent: (size ?? 0) > 0 });
  }
  return found;
}
