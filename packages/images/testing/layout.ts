import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface TestDescriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly [key: string]: unknown;
}

const OCI = 'application/vnd.oci.image';

/** Writes an OCI image layout by hand. */
export class TestLayout {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async in(dir: string): Promise<TestLayout> {
    await mkdir(join(dir, 'blobs', 'sha256'), { recursive: true });
    await writeFile(join(dir, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
    return new TestLayout(dir);
  }

  blobPath(digest: string): string {
    return join(this.dir, 'blobs', 'sha256', digest.slice('sha256:'.length));
  }

  async blob(data: Buffer | string, mediaType: string): Promise<TestDescriptor> {
    const bytes = Buffer.from(data as string);
    const digest = digestOf(bytes);
    await writeFile(this.blobPath(digest), bytes);
    return { mediaType, digest, size: bytes.length };
  }

  json(document: unknown, mediaType: string): Promise<TestDescriptor> {
    return this.blob(JSON.stringify(document), mediaType);
  }

  /** An image for amd64 of uncompressed layers, or of layers given as `[archive, stored blob]`. */
  async image(
    layers: readonly (Buffer | readonly [Buffer, Buffer])[],
    options: { config?: object; platform?: object; layerType?: string } = {},
  ): Promise<TestDescriptor> {
    const platform = options.platform ?? { os: 'linux', architecture: 'amd64' };
    const pairs = layers.map((layer): readonly [Buffer, Buffer] =>
      Buffer.isBuffer(layer) ? [layer, layer] : [...layer],
    );
    const config = await this.json(
      {
        ...platform,
        config: options.config ?? {},
        rootfs: { type: 'layers', diff_ids: pairs.map(([archive]) => digestOf(archive)) },
      },
      `${OCI}.config.v1+json`,
    );
    const type = options.layerType ?? `${OCI}.layer.v1.tar`;
    const blobs = await Promise.all(pairs.map(([, stored]) => this.blob(stored, type)));
    return this.json({ schemaVersion: 2, config, layers: blobs }, `${OCI}.manifest.v1+json`);
  }

  nested(manifests: readonly TestDescriptor[]): Promise<TestDescriptor> {
    return this.json({ schemaVersion: 2, manifests }, `${OCI}.index.v1+json`);
  }

  async index(...manifests: readonly TestDescriptor[]): Promise<void> {
    await writeFile(join(this.dir, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  }
}

export function digestOf(data: Buffer): string {
  return `sha256:${createHash('sha256').update(data).digest('hex')}`;
}
