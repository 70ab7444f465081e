import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { link, mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import type { Platform } from './platform.ts';

export interface ImageContent {
  readonly platform: Platform;
  /** members of the image configuration's `config`: Env, User, WorkingDir, … */
  readonly config: Readonly<Record<string, unknown>>;
  /** RFC 3339 */
  readonly created: string;
}

export interface LayoutContent extends ImageContent {
  /** uncompressed tar archive, the only layer */
  readonly archive: string;
}

/** A layer as a file, compressed with zstd and named by its digest in hexadecimal. */
export interface LayerBlob {
  /** folder of the file */
  readonly dir: string;
  readonly digest: string;
  /** digest of the archive inside */
  readonly diffId: string;
  readonly size: number;
}

/**
 * Writes an OCI image layout with one image of one layer (zstd) into an empty folder.
 * @returns digest of the manifest
 */
export async function writeLayout(dir: string, content: LayoutContent, signal?: AbortSignal): Promise<string> {
  const blobs = join(dir, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  return writeImage(dir, [await compressLayer(blobs, content.archive, signal)], content);
}

/**
 * Writes an OCI image layout with one image of the given layers, lowest first. Layers that lie elsewhere are linked in,
 * so they must be on the same file system.
 * @returns digest of the manifest
 */
export async function writeImage(dir: string, layers: readonly LayerBlob[], content: ImageContent): Promise<string> {
  const blobs = join(dir, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  for (const layer of layers) {
    const name = layer.digest.slice('sha256:'.length);
    if (layer.dir !== blobs) await link(join(layer.dir, name), join(blobs, name));
  }
  const { os, architecture } = content.platform;
  const config = await writeBlob(blobs, {
    created: content.created,
    architecture,
    os,
    config: content.config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
  });
  const manifest = await writeBlob(blobs, {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers: layers.map(({ digest, size }) => ({
      mediaType: 'application/vnd.oci.image.layer.v1.tar+zstd',
      digest,
      size,
    })),
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

/** Compresses a tar archive into a folder. */
export async function compressLayer(dir: string, archive: string, signal?: AbortSignal): Promise<LayerBlob> {
  const temporary = join(dir, 'layer.part');
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
  await rename(temporary, join(dir, hex));
  return { dir, digest: `sha256:${hex}`, size, diffId: `sha256:${diff.digest('hex')}` };
}
