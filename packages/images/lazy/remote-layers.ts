import type { BlobSource } from '@aenv/block/blob/contract.ts';
import { openLayerBlob } from '@aenv/block/blob/open-layer-blob.ts';
import type { LayerRef } from '@aenv/block/layers/stack/pool.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { RegistryClient } from '../registry/client.ts';
import { type RegistryClientConfig, registryClientFrom } from '../registry/client-from-config.ts';
import type { RemoteBlob } from '../resolve/contract.ts';
import { BlobCache, type OpenOptions } from './blob-cache.ts';
import { completeBlob } from './complete.ts';
import { registryOrigin } from './registry-origin.ts';

/** What can be handed to another process or thread. The cache is its own: one folder for each. */
export interface RemoteLayersConfig {
  readonly registry: RegistryClientConfig;
  /** folder of the parts that are kept */
  readonly cacheDir: string;
  readonly cacheBytes: number;
  readonly cacheKeepFreeBytes: number;
  readonly offlineAfterSeconds: number;
}

export type RemoteOptions = Pick<OpenOptions, 'priority'>;

/** Layers of registries that are already in the form of blocks, read on demand. */
export class RemoteLayers {
  readonly #client: RegistryClient;
  readonly #cache: BlobCache;

  constructor(client: RegistryClient, cache: BlobCache) {
    this.#client = client;
    this.#cache = cache;
  }

  /** @throws AenvError `config_invalid` */
  static async start(config: RemoteLayersConfig, log: Logger): Promise<RemoteLayers> {
    const client = registryClientFrom(config.registry, log);
    const cache = await BlobCache.start({
      root: config.cacheDir,
      capacityBytes: config.cacheBytes,
      keepFreeBytes: config.cacheKeepFreeBytes,
      offlineAfterMs: config.offlineAfterSeconds * 1000,
      log,
    });
    return new RemoteLayers(client, cache);
  }

  /** Bytes that are kept on disk, and that were fetched since the start. */
  get usage(): BlobCache['usage'] {
    return this.#cache.usage;
  }

  /** The blob as the registry has it. */
  open(remote: RemoteBlob, options: RemoteOptions = {}): Promise<BlobSource> {
    return this.#cache.open({ ...options, ...originOf(this.#client, remote) });
  }

  /** The layer inside the blob, for a stack. */
  ref(remote: RemoteBlob, options: RemoteOptions = {}): LayerRef {
    return {
      key: remote.digest,
      open: async () => {
        const blob = await this.open(remote, options);
        try {
          return await openLayerBlob(blob);
        } catch (error) {
          await giveUp(blob, error);
          throw error;
        }
      },
    };
  }

  /**
   * Fetches all of a layer, behind what guests wait for, and compares its digest.
   * @throws as `completeBlob`
   */
  async complete(remote: RemoteBlob, signal: AbortSignal): Promise<void> {
    const handle = await this.#cache.open({ priority: 'background', ...originOf(this.#client, remote) });
    try {
      await completeBlob(handle.blob, signal);
    } finally {
      await handle.close();
    }
  }

  /** Whether all of a layer was once here and had its digest. */
  isVerified(digest: string): boolean {
    return this.#cache.isVerified(digest);
  }

  /** Removes what is kept of a layer. @returns false when it is in use */
  remove(digest: string): Promise<boolean> {
    return this.#cache.remove(digest);
  }

  async close(): Promise<void> {
    await this.#cache.close();
    await this.#client.close();
  }
}

/** Closes a blob that is no layer, as it seems; what is kept of it is no reason to think so the next time. */
export async function giveUp(blob: BlobSource, error: unknown): Promise<void> {
  if (error instanceof AenvError && error.code === 'layer_corrupt') await blob.distrust?.(0, blob.size);
  await blob.close();
}

function originOf(client: RegistryClient, remote: RemoteBlob): Omit<OpenOptions, 'priority'> {
  return { digest: remote.digest, size: remote.size, origin: registryOrigin(client, remote) };
}
