import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { archiveOf } from '@aenv/images/convert/archive.ts';
import type { OciImage } from '@aenv/images/oci/layout.ts';
import { hostPlatform } from '@aenv/images/oci/platform.ts';

const OCI = 'application/vnd.oci.image';

/** Writes the layers of an image once more, compressed with gzip, as a layout whose image is named `base`. */
export async function gzipLayout(image: OciImage, dir: string, signal: AbortSignal): Promise<void> {
  const blobs = join(dir, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const write = async (data: Buffer, mediaType: string) => {
    const hex = createHash('sha256').update(data).digest('hex');
    await writeFile(join(blobs, hex), data);
    return { mediaType, digest: `sha256:${hex}`, size: data.length };
  };
  const layers: object[] = [];
  for (const layer of image.layers) {
    const part = join(dir, 'part');
    const hash = createHash('sha256');
    let size = 0;
    await pipeline(
      archiveOf(layer, signal),
      createGzip(),
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          hash.update(chunk);
          size += chunk.length;
          yield chunk;
        }
      },
      createWriteStream(part),
      { signal },
    );
    const hex = hash.digest('hex');
    await rename(part, join(blobs, hex));
    layers.push({ mediaType: `${OCI}.layer.v1.tar+gzip`, digest: `sha256:${hex}`, size });
  }
  const platform = hostPlatform();
  const rootfs = { type: 'layers', diff_ids: image.layers.map(({ diffId }) => diffId) };
  const config = await write(Buffer.from(JSON.stringify({ ...platform, config: {}, rootfs })), `${OCI}.config.v1+json`);
  const manifest = await write(
    Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json`, config, layers })),
    `${OCI}.manifest.v1+json`,
  );
  const named = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'base' } };
  await writeFile(join(dir, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }));
  await writeFile(join(dir, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
}
