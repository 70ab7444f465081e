import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { PulledImage, PullProgress } from '@aenv/images/pull/contract.ts';
import type { Credentials } from '@aenv/images/registry/credentials/contract.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Config } from '../../config/schema.ts';

export interface PullRequest {
  readonly image: string;
  /** names the folder for what is fetched ahead */
  readonly buildId: string;
  readonly credentials?: Credentials | undefined;
  readonly sizeBytes?: number | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PullProgress) => void;
}

/** Brings an image onto this host, as layers of a disk. @throws AenvError as `pullImage` */
export type Pull = (request: PullRequest) => Promise<PulledImage>;

/**
 * Pulls as the node's configuration says. The client of registries is loaded when the first image is asked for.
 * @param layersDir where converted layers are kept
 * @param spoolDir a folder for what is fetched ahead
 */
export function createPull(config: Pick<Config, 'registry'>, layersDir: string, spoolDir: string): Pull {
  return async ({ image, buildId, credentials, sizeBytes, log, signal, onProgress }) => {
    const { pullImage } = await import('@aenv/images/pull/pull-image.ts');
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
    const spool = join(spoolDir, buildId);
    try {
      return await pullImage(image, {
        ...{ client, layersDir, log, signal, onProgress },
        spoolDir: spool,
        ...(credentials === undefined ? {} : { credentials }),
        ...(sizeBytes === undefined ? {} : { sizeBytes }),
      });
    } catch (error) {
      signal.throwIfAborted();
      throw AenvError.from(error);
    } finally {
      await client.close();
      await rm(spool, { recursive: true, force: true });
    }
  };
}
