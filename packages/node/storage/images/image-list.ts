import { realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { filesOf, type KeptImage, readImageRecords } from '../../assets/images/image-record.ts';
import type { AssetPlaces } from '../../assets/places.ts';
import { OPEN } from '../../assets/roots/read-roots.ts';
import type { References } from '../../assets/roots/records.ts';
import { treeSize } from '../../assets/sizes.ts';
import type { Template } from '../../templates/contract.ts';
import { layerFiles } from '../../templates/layers.ts';
import type { ImageInfo } from '../contract.ts';

/** An image, and where what is its own is. */
export interface ListedImage extends ImageInfo {
  /** folders of its layers */
  readonly folders: readonly string[];
  readonly record?: KeptImage;
}

interface Found {
  readonly name: string;
  readonly digest: string;
  readonly diskSizeMb: number;
  readonly layers: number;
  readonly remoteBytes: number;
  readonly files: readonly string[];
  readonly record?: KeptImage;
}

/**
 * The images of the folder of assets, and those that templates of this node have without a name.
 * @param home of this node, whose templates are named one by one
 */
export async function listImages(
  places: AssetPlaces,
  templates: readonly Template[],
  roots: References,
  home: string,
): Promise<readonly ListedImage[]> {
  const found = new Map<string, Found>();
  for (const record of await readImageRecords(places.images)) {
    const { name, digest, diskSizeMb, layers } = record;
    const files = await Promise.all(filesOf(record).map(canonical));
    const remoteBytes = layers.reduce((sum, { path, sizeBytes }) => sum + (path === undefined ? sizeBytes : 0), 0);
    const image = { name, digest, diskSizeMb, layers: layers.length, remoteBytes, files, record };
    found.set(keyOf(digest, files), image);
  }
  const users = new Map<string, string[]>();
  for (const template of templates) {
    const { imageDigest: digest, layers } = template.source;
    const files = await Promise.all(layerFiles(template.source).map(canonical));
    const key = keyOf(digest, files);
    if (!found.has(key)) {
      const remoteBytes = layers.reduce((sum, layer) => sum + (layer.kind === 'remote' ? layer.size : 0), 0);
      const sizes = { diskSizeMb: template.diskSizeMb, layers: layers.length, remoteBytes };
      found.set(key, { name: '', digest, ...sizes, files });
    }
    users.set(key, [...(users.get(key) ?? []), `template ${template.aliases[0] ?? template.templateId}`]);
  }
  const sharing = countUses([...found.values()]);
  const sizes = new Map<string, number>();
  for (const folder of sharing.keys()) sizes.set(folder, (await treeSize(folder)).bytes);
  return [...found].map(([key, { files, record, ...image }]) => {
    const folders = files.map((path) => dirname(path));
    const sum = (all: readonly string[]) => all.reduce((total, folder) => total + (sizes.get(folder) ?? 0), 0);
    const bytes = sum(folders);
    const uniqueBytes = sum(folders.filter((folder) => sharing.get(folder) === 1));
    const named = [...(users.get(key) ?? []), ...othersOf(files.at(-1), roots, home)];
    // The block daemon has open what disks have: it counts where nobody else is known.
    const usedBy = named.length > 1 ? named.filter((user) => user !== OPEN) : named;
    return {
      ...{ ...image, folders, bytes, uniqueBytes, sharedBytes: bytes - uniqueBytes, usedBy },
      ...(record === undefined ? {} : { record, pulledAt: record.pulledAt }),
    };
  });
}

/** The topmost layer is of this image alone; who stands on it, stands on the image. */
function othersOf(top: string | undefined, roots: References, home: string): readonly string[] {
  const users = top === undefined ? [] : [...(roots.users.get(top) ?? [])];
  // Templates of this home are known one by one.
  return users.filter((user) => user !== `the home ${home}`);
}

function countUses(images: readonly Found[]): Map<string, number> {
  const uses = new Map<string, number>();
  for (const { files } of images) {
    for (const folder of files.map((path) => dirname(path))) uses.set(folder, (uses.get(folder) ?? 0) + 1);
  }
  return uses;
}

function keyOf(digest: string, files: readonly string[]): string {
  return JSON.stringify([digest, files]);
}

function canonical(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
