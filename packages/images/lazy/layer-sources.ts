import type { CreateLayerSources } from '@aenv/block/blockd/threads/layer-sources.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { z } from 'zod';
import { lazyFolders } from './folders.ts';
import { RemoteSource } from './remote-layer.ts';
import { RemoteLayers, type RemoteLayersConfig } from './remote-layers.ts';
import { TendedLayers } from './tended-layers.ts';
import { TraceFiles } from './trace/trace-files.ts';

const text = z.array(z.string());

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
  completeAfterSeconds: z.number().nullable(),
}) satisfies z.ZodType<LayerSourcesConfig>;

/** What the node writes for the block daemon: all but the folder, which each thread has. */
export interface LayerSourcesConfig extends Omit<RemoteLayersConfig, 'cacheDir'> {
  /** after the first use of a layer, until the rest of it is fetched; null: never */
  readonly completeAfterSeconds: number | null;
}

const TRACE_MS = 10_000;

/** Loaded by each thread of the block daemon: layers of registries, read on demand through a cache of its own. */
export const createLayerSources: CreateLayerSources = async ({ config, folder, log }) => {
  const { completeAfterSeconds, ...remote } = Config.parse(config);
  const { blobs, traces } = lazyFolders(folder);
  const layers = new TendedLayers({
    layers: await RemoteLayers.start({ ...remote, cacheDir: blobs }, log),
    traces: new TraceFiles(traces),
    traceMs: TRACE_MS,
    completeAfterMs: completeAfterSeconds === null ? undefined : completeAfterSeconds * 1000,
    completeUpToBytes: remote.cacheBytes / 2,
    clock: systemClock,
    log,
  });
  return {
    ref: (key, source) => {
      const parsed = RemoteSource.safeParse(source);
      if (parsed.success && parsed.data.digest === key) return layers.ref(parsed.data);
      throw new AenvError('layer_corrupt', `what is known of layer ${key} is no blob of a registry`);
    },
    close: () => layers.close(),
  };
};
