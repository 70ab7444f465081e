import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode } from '@aenv/images/errors/is-code.ts';

export interface TreeSize {
  /** what the files occupy on the host */
  readonly bytes: number;
  /** of these, what becomes free when the files are removed: those that have no other name */
  readonly freeableBytes: number;
}

/** Sizes of a file, or of all in a folder. What is removed meanwhile counts as nothing. */
export async function treeSize(path: string): Promise<TreeSize> {
  let bytes = 0;
  let freeableBytes = 0;
  const seen = new Set<number>();
  const visit = async (at: string): Promise<void> => {
    const found = await unlessGone(lstat(at));
    if (found === undefined) return;
    if (found.isDirectory()) {
      for (const name of (await unlessGone(readdir(at))) ?? []) await visit(join(at, name));
    } else if (!seen.has(found.ino)) {
      seen.add(found.ino);
      bytes += found.blocks * 512;
      if (found.nlink === 1) freeableBytes += found.blocks * 512;
    }
  };
  await visit(path);
  return { bytes, freeableBytes };
}

function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((error: unknown) => {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });
}
