import { createHash } from 'node:crypto';
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { z } from 'zod';
import { assetFolder } from '../cache/asset-folder.ts';
import { archiveOf } from '../convert/archive.ts';
import { applyLayer } from '../ext4/apply/layer.ts';
import { ImageFiles } from '../ext4/files/image-files.ts';
import { rootIdentity } from '../ext4/identity.ts';
import { Tree } from '../ext4/model/tree.ts';
import { RawDisk } from '../ext4/raw-disk.ts';
import { writeChanges } from '../ext4/write-changes.ts';
import type { ImageConfig } from '../oci/image-config.ts';
import { type OciImage, type ResolveOptions, readOciLayout } from '../oci/layout.ts';
import { prepareRoot } from '../start-state/prepare.ts';
import type { ImageStart } from '../start-state/start.ts';

export interface BuildRootfsOptions extends ResolveOptions {
  /** content-addressed cache */
  readonly assetsDir: string;
  /** size of the disk in bytes, a multiple of 4096; default 10 GiB, sparse */
  readonly sizeBytes?: number;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

export interface Rootfs {
  /** an ext4 file */
  readonly path: string;
  readonly sizeBytes: number;
  /** digest of the image's manifest */
  readonly digest: string;
  readonly config: ImageConfig;
  readonly start: ImageStart;
}

const DEFAULT_SIZE = 10 * 2 ** 30;
/** Part of the cache key: raise it when the same image would give another root file system. */
const FORMAT = 'rootfs-2';

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
 * as ext4. Kept under the digest of the manifest, so the second call only looks.
 * @param layoutDir OCI image layout folder
 * @throws AenvError `image_invalid`, `invalid_request` for a size that no disk can have, `no_space`; the signal's reason
 */
export async function buildRootfs(layoutDir: string, options: BuildRootfsOptions): Promise<Rootfs> {
  const sizeBytes = options.sizeBytes ?? DEFAULT_SIZE;
  const image = await readOciLayout(layoutDir, options);
  const key = createHash('sha256').update(`${FORMAT}\n${image.digest}\n${sizeBytes}`).digest('hex');
  const folder = await assetFolder(join(options.assetsDir, 'rootfs'), key, async (result) => {
    const started = performance.now();
    const start = await writeDisk(image, join(result, 'rootfs.ext4'), sizeBytes, options);
    const record: z.infer<typeof recordSchema> = {
      version: 1,
      digest: image.digest,
      sizeBytes,
      config: { ...image.config, ...mutable(image.config) },
      start: { ...start, envVars: { ...image.config.env } },
    };
    await writeDurable(join(result, 'image.json'), `${JSON.stringify(record, null, 2)}\n`);
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

async function writeDisk(image: OciImage, path: string, sizeBytes: number, options: BuildRootfsOptions) {
  const tree = Tree.create(rootIdentity(image.digest, sizeBytes));
  await using file = await open(path, 'wx+', 0o644);
  await file.truncate(sizeBytes);
  const disk = new RawDisk(file);
  for (const [at, layer] of image.layers.entries()) {
    const { digest, sizeBytes: bytes } = layer;
    options.log.info('unpacking layer', { layer: `${at + 1}/${image.layers.length}`, bytes, digest });
    await applyLayer(
      tree,
      archiveOf(layer, options.signal),
      disk,
      options.signal === undefined ? {} : { signal: options.signal },
    );
  }
  options.signal?.throwIfAborted();
  const start = await prepareRoot(new ImageFiles(tree, disk, disk), image.config);
  await writeChanges(tree, disk, options.signal);
  // Volumes stack on it: from here on nothing may change it.
  await file.chmod(0o444);
  await file.sync();
  return start;
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
