import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { followDiskMetrics } from '@aenv/block/client/disk-metrics.ts';
import { findRunning } from '@aenv/block/client/launch.ts';
import { createNbdStore } from '@aenv/block/client/nbd-store.ts';
import { BlockdSupervisor } from '@aenv/block/client/supervisor.ts';
import type { BlockStore } from '@aenv/block/contract.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import type { Config } from '../config/schema.ts';
import type { Folders } from './folders.ts';
import { type LayerSourceFiles, removeLayerSources, writeLayerSources } from './layer-sources.ts';

export type LayerSources = LayerSourceFiles['sources'];

/** The disks of a node, and the daemon that serves them. */
export interface Storage {
  readonly volumes: BlockStore;
  /** How the block daemon reads layers of registries; it is told the credentials that the host has now. */
  tellLayerSources(): Promise<LayerSources>;
  /** Lets go of the block daemon, which ends unless VMs use it. */
  close(): Promise<void>;
}

export interface StorageOptions {
  readonly config: Config;
  readonly folders: Folders;
  /** version of the product: a block daemon of another one, or with another configuration, is replaced */
  readonly version: string;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
}

/** Layers of a disk above which those that it has written are merged. */
const MAX_LAYERS = 32;
const MIN_GARBAGE_BYTES = 2 ** 30;
const LOOK_FOR_GARBAGE_MS = 10_000;

/** Takes over the block daemon of an earlier node, or starts one. */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  const { config, folders, version, log, metrics, signal } = options;
  const { uid, ioThreads } = config.storage;
  const runtime = join(folders.runtime, 'blockd');
  const sources = await writeLayerSources(config, runtime, uid);
  const supervisor = await BlockdSupervisor.open(
    {
      daemon: {
        root: folders.volumes,
        runtime,
        version: `${version}+${sources.fingerprint}`,
        uid,
        threads: ioThreads ?? defaultThreads(availableParallelism()),
        'max-layers': MAX_LAYERS,
        'min-garbage-bytes': MIN_GARBAGE_BYTES,
        'look-ms': LOOK_FOR_GARBAGE_MS,
        'sources-module': sources.module,
        'sources-config': sources.config,
      },
      logFile: join(folders.home, 'logs', 'blockd.log'),
      log,
      metrics,
    },
    signal,
  );
  const following = followDiskMetrics(supervisor, metrics, log);
  return {
    volumes: createNbdStore({ daemon: supervisor, root: folders.volumes, socketsDir: folders.disks, daemonUid: uid }),
    tellLayerSources: async () => (await writeLayerSources(config, runtime, uid)).sources,
    close: async () => {
      following.close();
      await supervisor.close();
      // Credentials are nobody's any more, unless the daemon serves on.
      const running = await findRunning(runtime);
      running?.connection.close();
      if (running === undefined) await removeLayerSources(runtime);
    },
  };
}

/** One thread serves hundreds of disks that are used now and then; each costs some 10 MB. */
function defaultThreads(cores: number): number {
  return Math.min(4, Math.max(1, Math.floor(cores / 8)));
}
