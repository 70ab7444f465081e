import { stat } from 'node:fs/promises';
import { layerPaths } from './paths.ts';

/**
 * The file of a layer that is not written any more, and bytes that it has: one that was sealed, or one that others were
 * merged into.
 * @param folder of the layer
 * @returns undefined where there is none
 */
export async function sealedFile(
  folder: string,
): Promise<{ readonly path: string; readonly sizeBytes: number } | undefined> {
  const { committed, sealed } = layerPaths(folder);
  for (const path of [committed, sealed]) {
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined) return { path, sizeBytes: found.size };
  }
  return undefined;
}
