import { appendFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BlobSource } from '../../blob/contract.ts';
import { openLayerFile } from '../../blob/open-layer-blob.ts';
import type { CreateLayerSources } from '../../blockd/threads/layer-sources.ts';

/** Layers that are never at hand: each read takes its time, as over a network. Notes in its folder what was asked for. */
export const createLayerSources: CreateLayerSources = async ({ config, folder }) => {
  const { delayMs } = config as { delayMs: number };
  await mkdir(folder, { recursive: true });
  const note = (text: string) => appendFile(join(folder, 'notes'), `${text}\n`);
  return {
    ref: (key, source) => {
      const { path } = source as { path: unknown };
      if (typeof path !== 'string') throw new AenvError('layer_unavailable', `nobody knows ${key}`);
      return {
        key,
        open: async (): Promise<BlobSource> => {
          await note(`open ${key}`);
          const file = await openLayerFile(path);
          return {
            size: file.size,
            readSync: () => false,
            async read(target, offset, signal) {
              await delay(delayMs);
              await file.read(target, offset, signal);
            },
            close: () => file.close(),
          };
        },
      };
    },
    close: () => note('closed'),
  };
};
