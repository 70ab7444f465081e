import { join } from 'node:path';

/** Names that the reference gives to the files of a layer's folder. */
export function layerPaths(folder: string): { data: string; index: string; sealed: string; committed: string } {
  return {
    data: join(folder, 'writable_data'),
    index: join(folder, 'writable_index'),
    sealed: join(folder, 'overlaybd.sealed'),
    committed: join(folder, 'overlaybd.commit'),
  };
}
