import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode } from '@aenv/images/errors/is-code.ts';
import { writeDurable } from '@aenv/platform/files/durable.ts';
import { markUsed } from '@aenv/platform/files/mark-used.ts';
import { sealJson, unsealJson } from '@aenv/platform/files/sealed-json.ts';
import { z } from 'zod';

const Stored = z.strictObject({
  version: z.literal(1),
  name: z.string(),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  diskSizeMb: z.int(),
  layers: z.array(z.strictObject({ digest: z.string(), sizeBytes: z.int(), path: z.string().exactOptional() })),
  pulledAt: z.iso.datetime(),
});

export interface ImageLayer {
  readonly digest: string;
  /** of what is stored, in its registry or here */
  readonly sizeBytes: number;
  /** file of this host; absent: it is read from a registry on demand */
  readonly path?: string;
}

/** An image that was pulled, as the disk that templates of it have. */
export interface ImageRecord {
  /** the full name that it was pulled by */
  readonly name: string;
  /** of its manifest */
  readonly digest: string;
  /** an image may be here with disks of several sizes */
  readonly diskSizeMb: number;
  /** bottom first */
  readonly layers: readonly ImageLayer[];
  readonly pulledAt: Date;
}

export interface KeptImage extends ImageRecord {
  /** file of the record */
  readonly path: string;
}

/** Where the record of an image is, if there is one. It follows from what templates know of it. */
export function imageRecordPath(imagesDir: string, { digest, diskSizeMb }: Pick<ImageRecord, 'digest' | 'diskSizeMb'>) {
  return join(imagesDir, `${digest.replace(/^sha256:/, '')}-${diskSizeMb}.json`);
}

/** Durable when it resolves. One that says the same of its layers stays, as it was used. */
export async function keepImageRecord(imagesDir: string, image: ImageRecord): Promise<void> {
  await mkdir(imagesDir, { recursive: true, mode: 0o755 });
  const path = imageRecordPath(imagesDir, image);
  const before = await readImageRecord(path);
  const isSame = before !== undefined && before.name === image.name && filesOf(before).join() === filesOf(image).join();
  if (isSame && (await markUsed(path))) return;
  const record: z.infer<typeof Stored> = {
    ...{ version: 1, name: image.name, digest: image.digest, diskSizeMb: image.diskSizeMb },
    ...{ layers: image.layers.map((layer) => ({ ...layer })), pulledAt: image.pulledAt.toISOString() },
  };
  await writeDurable(path, sealJson(record));
}

/** Images that have been pulled, the newest first. A record that cannot be read names nothing, and is left out. */
export async function readImageRecords(imagesDir: string): Promise<readonly KeptImage[]> {
  const names = await readdir(imagesDir).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  });
  const paths = names.filter((name) => /^[0-9a-f]{64}-\d+\.json$/.test(name)).map((name) => join(imagesDir, name));
  const records = await Promise.all(paths.map(readImageRecord));
  return records.filter((record) => record !== undefined).sort((a, b) => b.pulledAt.getTime() - a.pulledAt.getTime());
}

export async function readImageRecord(path: string): Promise<KeptImage | undefined> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return '';
    throw error;
  });
  const stored = Stored.safeParse(unsealJson(text));
  if (!stored.success) return undefined;
  const { version: _, pulledAt, ...rest } = stored.data;
  return { ...rest, pulledAt: new Date(pulledAt), path };
}

/** Files of layers that are on this host. */
export function filesOf({ layers }: Pick<ImageRecord, 'layers'>): readonly string[] {
  return layers.flatMap(({ path }) => (path === undefined ? [] : [path]));
}
