import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Platform } from './platform.ts';

export interface LayoutContent {
  readonly platform: Platform;
  /** uncompressed tar archive, the only layer */
  readonly archive: string;
  /** members of the image configuration's `config`: Env, User, WorkingDir, … */
  readonly config: Readonly<Record<string, unknown>>;
  /** RFC 3339 */
  readonly created: string;
}

/**
 * Writes an OCI image layout with one image of one layer (zstd) into an empty folder.
 * @returns digest of the manifest
 */
export async function writeLayout(dir: string, content: LayoutContent, signal?: AbortSignal): Promise<string> {
  const blobs = join(dir, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const layer = await compressInto(blobs, content.archive, signal);
  const { os, architecture } = content.platform;
  const config = await writeBlob(blobs, {
    created: content.created,
    architecture,
    os,
    config: content.config,
    rootfs: { type: 'layers', diff_ids: [layer.diffId] },
  });
  const manifest = await writeBlob(blobs, {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+zstd', digest: layer.digest, size: layer.size }],
  });
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      { mediaType: 'application/vnd.oci.image.manifest.v1+json', ...manifest, platform: { architecture, os } },
    ],
  };
  await writeDurable(join(dir, 'index.json'), JSON.stringify(index));
  await writeDurable(join(dir, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  return manifest.digest;
}

async function writeBlob(blobs: string, document: unknown): Promise<{ digest: string; size: number }> {
  const data = Buffer.from(JSON.stringify(document));
  const hex = createHash('sha256').update(data).digest('hex');
  await writeDurable(join(blobs, hex), data);
  return { digest: `sha256:${hex}`, size: data.length };
}

async function compressInto(blobs: string, archive: string, signal?: AbortSignal) {
  const temporary = join(blobs, 'layer.part');
  const diff = createHash('sha256');
  const blob = createHash('sha256');
  let size = 0;
  await pipeline(
    createReadStream(archive, { highWaterMark: 1024 * 1024 }),
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        diff.update(chunk);
        yield chunk;
      }
    },
    createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        blob.update(chunk);
        size += chunk.length;
        yield chunk;
      }
    },
    createWriteStream(temporary),
    { ...(signal === undefined ? {} : { signal }) },
  );
  {
    await using file = await open(temporary, 'r');
    await file.sync();
  }
  const hex = blob.digest('hex');
  await rename(temporary, join(blobs, hex));
  return { digest: `sha256:${hex}`, size, diffId: `sha256:${diff.digest('hex')}` };
}
