import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseImage } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { z } from 'zod';
import { assetFolder } from '../cache/asset-folder.ts';
import { LayerApplier } from '../layers/applier.ts';
import { decompress } from '../layers/decompress.ts';
import { readText } from '../layers/files-of.ts';
import { RootDir } from '../layers/root-dir.ts';
import { requireDigest, verified } from '../oci/digest.ts';
import type { ImageConfig } from '../oci/image-config.ts';
import { type OciImage, type OciLayer, type ResolveOptions, readOciLayout } from '../oci/layout.ts';
import { parsePasswd } from '../start-state/accounts.ts';
import { applyStartState, makeWorkingDir } from '../start-state/apply.ts';
import { type ImageStart, startOf } from '../start-state/start.ts';
import { MKFS_VERSION, makeExt4 } from './mkfs.ts';

export interface BuildRootfsOptions extends ResolveOptions {
  /** content-addressed cache */
  readonly assetsDir: string;
  /** size of the disk in bytes, a multiple of 4096; default 10 GiB, sparse */
  readonly sizeBytes?: number;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

export interface Rootfs extends BaseImage {
  /** digest of the image's manifest */
  readonly digest: string;
  readonly config: ImageConfig;
  readonly start: ImageStart;
}

const DEFAULT_SIZE = 10 * 2 ** 30;
/** Part of the cache key: raise it when the same image would give another root file system. */
const FORMAT = `rootfs-1, mkfs-${MKFS_VERSION}`;

const recordSchema = z.object({
  version: z.literal(1),
  digest: z.string(),
  sizeBytes: z.number(),
  config: z.object({
    env: z.record(z.string(), z.string()),
    workingDir: z.string(),
    user: z.string(),
    entrypoint: z.array(z.string()),
    cmd: z.array(z.string()),
    exposedPorts: z.array(z.string()),
    labels: z.record(z.string(), z.string()),
  }),
  start: z.object({ user: z.string(), workdir: z.string(), envVars: z.record(z.string(), z.string()) }),
});

/**
 * Makes the root file system that sandboxes of an image start from: its layers applied, E2B's start state added, written
 * as ext4. Kept under the digest of the manifest, so the second call only looks. Needs root.
 * @param layoutDir OCI image layout folder
 * @throws AenvError `image_invalid`, `no_space`, `host_command_missing`, `host_command_failed`; the signal's reason
 */
export async function buildRootfs(layoutDir: string, options: BuildRootfsOptions): Promise<Rootfs> {
  const sizeBytes = options.sizeBytes ?? DEFAULT_SIZE;
  const image = await readOciLayout(layoutDir, options);
  const key = createHash('sha256').update(`${FORMAT}\n${image.digest}\n${sizeBytes}`).digest('hex');
  const folder = await assetFolder(join(options.assetsDir, 'rootfs'), key, async (result, scratch) => {
    const started = performance.now();
    const root = join(scratch, 'root');
    await mkdir(root, { mode: 0o755 });
    await applyLayers(image, root, scratch, options);
    const start = await prepare(root, image.config);
    options.signal?.throwIfAborted();
    await makeExt4(root, join(result, 'rootfs.ext4'), sizeBytes, image.digest, options.signal);
    const record: z.infer<typeof recordSchema> = {
      version: 1,
      digest: image.digest,
      sizeBytes,
      config: { ...image.config, ...mutable(image.config) },
      start: { ...start, envVars: { ...start.envVars } },
    };
    await writeDurable(join(result, 'image.json'), `${JSON.stringify(record, null, 2)}\n`);
    await rm(root, { recursive: true, force: true });
    const ms = Math.round(performance.now() - started);
    options.log.info('root file system made', { digest: image.digest, ms });
  });
  return readRootfs(folder);
}

async function readRootfs(folder: string): Promise<Rootfs> {
  const path = join(folder, 'rootfs.ext4');
  const record = recordSchema.safeParse(await readRecord(join(folder, 'image.json')));
  const size = await stat(path).then(
    (found) => found.size,
    () => -1,
  );
  if (!record.success || record.data.sizeBytes !== size) {
    throw new AenvError('asset_failed', `${folder} does not hold what it should`, {
      remediation: `Remove ${folder}; it is made again.`,
      cause: record.error,
    });
  }
  const { digest, config, start } = record.data;
  return { digest, path, sizeBytes: size, config, start };
}

async function readRecord(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch {
    return undefined;
  }
}

async function applyLayers(image: OciImage, root: string, scratch: string, options: BuildRootfsOptions): Promise<void> {
  const applier = new LayerApplier({ ...options, root, scratch });
  for (const [at, layer] of image.layers.entries()) {
    options.log.info('unpacking layer', {
      layer: `${at + 1}/${image.layers.length}`,
      bytes: layer.sizeBytes,
      digest: layer.digest,
    });
    await applier.apply(archiveOf(layer));
  }
  await applier.finish();
}

/** Checks both digests: that of the blob as stored, and that of the archive inside. */
function archiveOf(layer: OciLayer): AsyncIterable<Uint8Array> {
  return verified(decompress(layer.open()), requireDigest(layer.diffId), undefined, `archive of layer ${layer.digest}`);
}

async function prepare(root: string, config: ImageConfig): Promise<ImageStart> {
  await applyStartState(root);
  if (config.workingDir !== '') await makeWorkingDir(root, config.workingDir);
  const passwd = await readText(new RootDir(root), 'etc/passwd');
  return startOf(config, passwd === undefined ? [] : parsePasswd(passwd));
}

/** The record's type has plain arrays and objects where the configuration's are read-only. */
function mutable(config: ImageConfig) {
  return {
    env: { ...config.env },
    entrypoint: [...config.entrypoint],
    cmd: [...config.cmd],
    exposedPorts: [...config.exposedPorts],
    labels: { ...config.labels },
  };
}
