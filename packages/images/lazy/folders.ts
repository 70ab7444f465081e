import { join } from 'node:path';

/**
 * Where a thread of the block daemon keeps what of remote layers.
 * @param folder its own
 */
export function lazyFolders(folder: string): { readonly blobs: string; readonly traces: string } {
  return { blobs: join(folder, 'blobs'), traces: join(folder, 'traces') };
}
