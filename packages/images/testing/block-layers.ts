import { randomUUID } from 'node:crypto';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXCHANGE_FORM, type LayerForm } from '@aenv/block/layers/commit/layer-file.ts';
import { LayerWriter } from '@aenv/block/layers/commit/layer-writer.ts';
import type { TestDescriptor, TestLayout } from './layout.ts';

const STEP = 64 * 1024;
const PREFIX = 'containerd.io/snapshot/overlaybd';

/**
 * Adds an image of block layers to a layout, as accelerated-container-image pushes them: each layer holds what one of the
 * disks has other than the one before.
 * @param disks paths of files of one size, the lowest layer first
 * @returns the manifest and the layers
 */
export async function blockImage(
  layout: TestLayout,
  disks: readonly string[],
  config: object = {},
  form: LayerForm = EXCHANGE_FORM,
): Promise<{ readonly manifest: TestDescriptor; readonly layers: readonly TestDescriptor[] }> {
  const blobs: Buffer[] = [];
  for (const [at, disk] of disks.entries()) blobs.push(await layerBetween(disks[at - 1], disk, form));
  return describedImage(layout, blobs, config);
}

/** Adds an image whose layers are these blobs, the lowest one first. */
export async function describedImage(
  layout: TestLayout,
  blobs: readonly Buffer[],
  config: object = {},
): Promise<{ readonly manifest: TestDescriptor; readonly layers: readonly TestDescriptor[] }> {
  const layers: TestDescriptor[] = [];
  const platform = { os: 'linux', architecture: 'amd64' };
  for (const blob of blobs) {
    const stored = await layout.blob(blob, 'application/vnd.oci.image.layer.v1.tar');
    const annotations = { [`${PREFIX}/blob-digest`]: stored.digest, [`${PREFIX}/blob-size`]: String(stored.size) };
    layers.push({ ...stored, annotations });
  }
  const rootfs = { type: 'layers', diff_ids: layers.map(({ digest }) => digest) };
  const described = await layout.json({ ...platform, config, rootfs }, 'application/vnd.oci.image.config.v1+json');
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = await layout.json({ schemaVersion: 2, mediaType: type, config: described, layers }, type);
  return { manifest, layers };
}

async function layerBetween(below: string | undefined, disk: string, form: LayerForm): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'images-blocks-'));
  try {
    await using file = await open(disk);
    await using lower = below === undefined ? undefined : await open(below);
    const { size } = await file.stat();
    const path = join(folder, 'layer');
    const writer = await LayerWriter.create({ path, form, uuid: randomUUID(), virtualSize: size });
    const [data, old] = [Buffer.alloc(STEP), Buffer.alloc(STEP)];
    for (let at = 0; at < size; at += STEP) {
      const { bytesRead } = await file.read(data, 0, STEP, at);
      await lower?.read(old, 0, STEP, at);
      if (!data.equals(old)) await writer.append(data.subarray(0, bytesRead), at);
    }
    await writer.finish();
    return await readFile(path);
  } finally {
    await rm(folder, { recursive: true });
  }
}
