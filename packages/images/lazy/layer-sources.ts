import type { CreateLayerSources } from '@aenv/block/blockd/threads/layer-sources.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { RemoteSource } from './remote-layer.ts';
import { RemoteLayers, type RemoteLayersConfig } from './remote-layers.ts';

const text = z.array(z.string());

/** What the node writes for the block daemon: all of `RemoteLayersConfig` but the folder, which each thread has. */
const Config = z.object({
  registry: z.object({
    search: text,
    allowed: text.exactOptional(),
    insecure: text,
    mirrors: text,
    ca: text,
    dockerConfig: z.string().exactOptional(),
  }),
  cacheBytes: z.number(),
  cacheKeepFreeBytes: z.number(),
  offlineAfterSeconds: z.number(),
}) satisfies z.ZodType<Omit<RemoteLayersConfig, 'cacheDir'>>;

/** Loaded by each thread of the block daemon: layers of registries, read on demand through a cache of its own. */
export const createLayerSources: CreateLayerSources = async ({ config, folder, log }) => {
  const layers = await RemoteLayers.start({ ...Config.parse(config), cacheDir: folder }, log);
  return {
    ref: (key, source) => {
      const parsed = RemoteSource.safeParse(source);
      if (parsed.success && parsed.data.digest === key) return layers.ref(parsed.data);
      throw new AenvError('layer_corrupt', `what is known of layer ${key} is no blob of a registry`);
    },
    close: () => layers.close(),
  };
};
