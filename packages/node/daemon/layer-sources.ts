import { createHash } from 'node:crypto';
import { chown, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LayerSourcesConfig } from '@aenv/images/lazy/layer-sources.ts';
import { dockerConfigFile } from '@aenv/images/registry/credentials/docker-credentials.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Config } from '../config/schema.ts';

/** What the block daemon is told of layers that are in registries. */
export interface LayerSourceFiles {
  readonly module: string;
  readonly config: string;
  /** equal as long as the daemon need not be told anew */
  readonly fingerprint: string;
  /** what is in the file */
  readonly sources: LayerSourcesConfig;
}

const SOURCES = 'sources.json';
const CREDENTIALS = 'docker.json';
const MODULE = fileURLToPath(import.meta.resolve('@aenv/images/lazy/layer-sources.ts'));

/**
 * Writes how registries are reached to where the block daemon, a user without rights, can read it. Of Docker's
 * configuration it gets the credentials that are in the file; helpers are programs of the user who logged in, and cannot
 * be run there.
 * @param folder of the daemon; made if it is not there
 */
export async function writeLayerSources(config: Config, folder: string, uid: number): Promise<LayerSourceFiles> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chown(folder, uid, uid);
  const write = async (name: string, value: unknown) => {
    const path = join(folder, name);
    await writeDurable(path, `${JSON.stringify(value)}\n`, 0o600);
    await chown(path, uid, uid);
    return path;
  };
  const { search, allowed, insecure, mirrors, ca, dockerConfig } = config.registry;
  const credentials = { auths: await readAuths(dockerConfig ?? dockerConfigFile()) };
  const sources = {
    registry: {
      ...{ search, insecure, mirrors, ca },
      ...(allowed === undefined ? {} : { allowed }),
      dockerConfig: await write(CREDENTIALS, credentials),
    },
    cacheBytes: config.registry.cacheBytes,
    cacheKeepFreeBytes: config.registry.cacheKeepFreeBytes,
    offlineAfterSeconds: config.registry.offlineAfterSeconds,
    completeAfterSeconds: config.registry.completeLayers ? config.registry.completeAfterSeconds : null,
  };
  return {
    sources,
    module: MODULE,
    config: await write(SOURCES, sources),
    // Credentials are read anew for every question, so they need no new daemon.
    fingerprint: createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 8),
  };
}

/** Removes what was written for a daemon that is no more. */
export async function removeLayerSources(folder: string): Promise<void> {
  for (const name of [SOURCES, CREDENTIALS]) await rm(join(folder, name), { force: true });
}

async function readAuths(path: string): Promise<unknown> {
  try {
    const parsed: unknown = JSON.parse(await readFile(path, 'utf8'));
    return typeof parsed === 'object' && parsed !== null && 'auths' in parsed ? parsed.auths : {};
  } catch {
    // No login, or nothing that can be read: whoever pulls an image is told of it.
    return {};
  }
}
