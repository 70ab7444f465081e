import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode } from '@aenv/images/errors/is-code.ts';
import type { AssetEntry, AssetKind } from './contract.ts';
import type { AssetPlaces } from './places.ts';

const KEY = /^[0-9a-f]{64}$/;
const LAYER = /^([0-9a-f]{64}|blob-[a-z0-9]+-[0-9a-f]+)$/;
const GUEST = /^(kernel|tools|initramfs|native)-[0-9a-f]{64}$/;
/** Folders of other kinds are beside them. */
const VMM = /^qemu-[a-z]+(-backports)?$/;
const IMAGE = /^[0-9a-f]{64}-\d+\.json$/;

/** All that is complete; what is being made has names of other forms. */
export async function listEntries(places: AssetPlaces): Promise<readonly AssetEntry[]> {
  const all: AssetEntry[] = [];
  const add = async (kind: AssetKind, folder: string, form: RegExp) => {
    for (const name of await namesIn(folder)) {
      if (!form.test(name)) continue;
      const path = join(folder, name);
      const found = await lstat(path).catch((error: unknown) => {
        if (isCode(error, 'ENOENT')) return undefined;
        throw error;
      });
      if (found !== undefined) all.push({ kind, path, usedAt: found.mtimeMs });
    }
  };
  await add('layer', places.layers, LAYER);
  await add('machine', places.machines, KEY);
  await add('guest', places.guest, GUEST);
  await add('image', places.images, IMAGE);
  await add('vmm', places.root, VMM);
  for (const folder of places.sources) await add('source', folder, KEY);
  return all;
}

export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  }
}
