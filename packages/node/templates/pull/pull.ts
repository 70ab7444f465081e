import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { RemoteLayers, RemoteLayersConfig } from '@aenv/images/lazy/remote-layers.ts';
import type { PulledImage, PullProgress } from '@aenv/images/pull/contract.ts';
import type { Credentials } from '@aenv/images/registry/credentials/contract.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { type ImageRecord, keepImageRecord } from '../../assets/images/image-record.ts';
import type { Config } from '../../config/schema.ts';

export interface PullRequest {
  readonly image: string;
  /** names the folder for what is fetched ahead */
  readonly buildId: string;
  readonly credentials?: Credentials | undefined;
  readonly sizeBytes?: number | undefined;
  /** for a drive instead of what sandboxes boot: label of its file system */
  readonly driveLabel?: string | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
}

/** In the folder for what is fetched ahead: parts of layers that stay in their registry. */
const PARTS = 'parts';

/** Brings an image onto this host, as layers of a disk. @throws AenvError as `pullImage` */
export type Pull = (request: PullRequest) => Promise<PulledImage>;

export interface PullPlaces {
  /** where converted layers are kept */
  readonly layers: string;
  /** where images are kept by their names */
  readonly images: string;
  /** for what is fetched ahead */
  readonly spool: string;
  /** how layers that stay in their registry will be read */
  readonly layerSources: () => Promise<Omit<RemoteLayersConfig, 'cacheDir'>>;
}

/**
 * Pulls as the node's configuration says. The client of registries is loaded when the first image is asked for.
 */
export function createPull(config: Pick<Config, 'registry'>, places: PullPlaces): Pull {
  return async ({ image, buildId, credentials, sizeBytes, driveLabel: label, log, signal, onProgress }) => {
    const { pullImage } = await import('@aenv/images/pull/pull-image.ts');
    const { pullDrive } = await import('@aenv/images/drive/pull-drive.ts');
    const { registryClientFrom } = await import('@aenv/images/registry/client-from-config.ts');
    const { search, insecure, mirrors, ca, allowed, dockerConfig } = config.registry;
    const client = registryClientFrom(
      {
        ...{ search, insecure, mirrors, ca },
        ...(allowed === undefined ? {} : { allowed }),
        ...(dockerConfig === undefined ? {} : { dockerConfig }),
      },
      log,
    );
    const spool = join(places.spool, buildId);
    let remoteLayers: RemoteLayers | undefined;
    try {
      // Credentials of one request are not kept, so nobody could read what stays in the registry.
      if (credentials === undefined) {
        const { RemoteLayers: Layers } = await import('@aenv/images/lazy/remote-layers.ts');
        remoteLayers = await Layers.start({ ...(await places.layerSources()), cacheDir: join(spool, PARTS) }, log);
      }
      const options = {
        ...{ client, log, signal, onProgress },
        ...{ layersDir: places.layers, spoolDir: spool },
        ...(remoteLayers === undefined ? {} : { remoteLayers }),
        ...(credentials === undefined ? {} : { credentials }),
        ...(sizeBytes === undefined ? {} : { sizeBytes }),
      };
      // A drive is no image that templates could be made of: it has no record.
      if (label !== undefined) return await pullDrive(image, { ...options, label });
      const pulled = await pullImage(image, options);
      await keepImageRecord(places.images, recordOf(pulled));
      return pulled;
    } catch (error) {
      signal.throwIfAborted();
      throw AenvError.from(error);
    } finally {
      await remoteLayers?.close();
      await client.close();
      await rm(spool, { recursive: true, force: true });
    }
  };
}

function recordOf({ name, digest, layers, sizeBytes }: PulledImage): ImageRecord {
  return {
    ...{ name, digest, diskSizeMb: Math.ceil(sizeBytes / 2 ** 20), pulledAt: new Date() },
    layers: layers.map((layer) => ({
      ...{ digest: layer.digest, sizeBytes: layer.sizeBytes },
      ...(layer.kind === 'file' ? { path: layer.path } : {}),
    })),
  };
}
