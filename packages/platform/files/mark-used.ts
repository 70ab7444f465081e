import { utimes } from 'node:fs/promises';

/**
 * Notes that a cached file or folder was used, in its modification time: what has not been used for long may be removed.
 * Where the cache cannot be written nobody removes anything either.
 * @returns false when it is not there
 */
export async function markUsed(path: string): Promise<boolean> {
  const now = new Date();
  try {
    await utimes(path, now, now);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') return false;
    if (code !== 'EROFS' && code !== 'EPERM' && code !== 'EACCES') throw error;
  }
  return true;
}
