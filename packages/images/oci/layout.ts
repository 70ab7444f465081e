import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isCode } from '../errors/is-code.ts';
import { requireDigest, verified } from './digest.ts';
import { type ContentStore, findImage, MAX_JSON, type OciImage, parseDocument, toJson } from './find-image.ts';
import { hostPlatform, type Platform } from './platform.ts';
import { type Descriptor, type ImageIndex, indexSchema, layoutSchema } from './schemas.ts';

export type { OciImage, OciLayer } from './find-image.ts';

export interface ResolveOptions {
  readonly platform?: Platform;
  /** only images with this `org.opencontainers.image.ref.name`; default is the first that fits */
  readonly ref?: string;
  readonly signal?: AbortSignal | undefined;
}

/** Files of a layout by their path in it: a folder, or an archive of one. */
export interface LayoutFiles {
  /** for messages */
  readonly name: string;
  /** @returns undefined when there is no such file */
  size(path: string): Promise<number | undefined>;
  read(path: string, signal?: AbortSignal): AsyncIterable<Uint8Array>;
}

/**
 * Finds the image for a platform in an OCI image layout folder: see `findImage`. Every blob is checked against its
 * digest and size.
 * @throws AenvError `image_invalid`: damaged or of an unsupported kind; `image_platform_missing`
 */
export function readOciLayout(dir: string, options: ResolveOptions = {}): Promise<OciImage> {
  return readLayoutFiles(new LayoutFolder(dir), options);
}

/** `readOciLayout` for a layout wherever it is. */
export async function readLayoutFiles(files: LayoutFiles, options: ResolveOptions = {}): Promise<OciImage> {
  parseDocument(layoutSchema, await readJson(files, 'oci-layout'), 'oci-layout');
  const index: ImageIndex = parseDocument(indexSchema, await readJson(files, 'index.json'), 'index.json');
  const wanted = options.ref;
  const top =
    wanted === undefined
      ? index.manifests
      : index.manifests.filter((entry) => entry.annotations?.['org.opencontainers.image.ref.name'] === wanted);
  return findImage(new LayoutStore(files), top, {
    platform: options.platform ?? hostPlatform(),
    signal: options.signal,
  });
}

class LayoutStore implements ContentStore {
  readonly name: string;
  readonly #files: LayoutFiles;

  constructor(files: LayoutFiles) {
    this.#files = files;
    this.name = files.name;
  }

  async document(descriptor: Descriptor, _: 'manifest' | 'config', signal?: AbortSignal): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.layer(descriptor, signal)) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  async *layer(descriptor: Descriptor, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const digest = requireDigest(descriptor.digest);
    const path = `blobs/${digest.algorithm}/${digest.hex}`;
    const size = await this.#files.size(path);
    if (size === undefined) throw new AenvError('image_invalid', `blob ${descriptor.digest} is missing`);
    yield* verified(this.#files.read(path, signal), digest, descriptor.size, `blob ${descriptor.digest}`);
  }
}

class LayoutFolder implements LayoutFiles {
  readonly name = 'the layout';
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  async size(path: string): Promise<number | undefined> {
    try {
      return (await stat(join(this.#dir, path))).size;
    } catch (error) {
      if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
      throw error;
    }
  }

  async *read(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const stream = createReadStream(join(this.#dir, path), { highWaterMark: 256 * 1024 });
    try {
      for await (const chunk of stream) {
        signal?.throwIfAborted();
        yield chunk as Buffer;
      }
    } finally {
      stream.destroy();
    }
  }
}

async function readJson(files: LayoutFiles, path: string): Promise<unknown> {
  const size = await files.size(path);
  if (size === undefined) throw new AenvError('image_invalid', `no OCI image layout: ${path} is missing`);
  if (size > MAX_JSON) throw new AenvError('image_invalid', `${path} is larger than ${MAX_JSON} bytes`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of files.read(path)) chunks.push(chunk);
  return toJson(Buffer.concat(chunks), path);
}
