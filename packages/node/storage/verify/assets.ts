import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { checkEntry } from '@aenv/guest/cache/asset-cache.ts';
import { unsealJson } from '@aenv/platform/files/sealed-json.ts';
import { z } from 'zod';
import type { AssetEntry, AssetKind } from '../../assets/contract.ts';
import { listEntries, namesIn } from '../../assets/entries.ts';
import { readHomeFiles } from '../../assets/homes/home-file.ts';
import { readImageRecord } from '../../assets/images/image-record.ts';
import type { AssetPlaces } from '../../assets/places.ts';
import type { Checks } from '../../snapshots/repository/checks.ts';
import { checkFile } from '../../snapshots/repository/hash-file.ts';
import { repositoryFolders } from '../../snapshots/repository/layout.ts';
import { DISK_LAYER, DISK_SUM } from '../../templates/machine/disk-files.ts';
import { damaged, textOf, verifyLayer, verifyStructure } from './layers.ts';
import type { VerifyProgress } from './progress.ts';
import { verifyRepository } from './repositories.ts';

const DiskSum = z.strictObject({ digest: z.string(), sizeBytes: z.int() });

/** Everything in the folder of assets that can be told from what it should be. What goes meanwhile is no fault. */
export async function verifyAssets(places: AssetPlaces, checks: Checks, progress: VerifyProgress): Promise<void> {
  for (const path of (await readHomeFiles(places.homes)).unreadable) {
    await checks.of('claims of a home', path, () => Promise.reject(damaged(path, 'its checksum does not hold')));
  }
  const entries = await listEntries(places);
  const of = new Map<AssetKind, number>();
  for (const { kind } of entries) of.set(kind, (of.get(kind) ?? 0) + 1);
  const done = new Map<AssetKind, number>();
  for (const entry of entries) {
    const { kind } = entry;
    const told = { what: kind, of: of.get(kind) ?? 0 };
    const number = done.get(kind) ?? 0;
    if (number === 0) progress({ ...told, done: 0, checkedBytes: checks.checkedBytes });
    const before = checks.problems.length;
    await verifyEntry(entry, checks);
    if (checks.problems.length > before && !(await exists(entry.path))) checks.problems.length = before;
    done.set(kind, number + 1);
    progress({ ...told, done: number + 1, checkedBytes: checks.checkedBytes });
  }
}

async function verifyEntry({ kind, path }: AssetEntry, checks: Checks): Promise<void> {
  if (kind === 'layer') return verifyLayer(path, checks);
  if (kind === 'machine') return verifyMachine(path, checks);
  if (kind === 'image') {
    await checks.of('record of an image', path, async () => {
      if ((await readImageRecord(path)) === undefined) throw damaged(path, 'its checksum does not hold');
    });
  }
  if (kind === 'guest') {
    const { bytes, damaged: bad } = await checkEntry(path);
    checks.checkedBytes += bytes;
    for (const file of bad) {
      await checks.of('what microVMs boot', file, () => Promise.reject(damaged(file, 'it is not what was sealed')));
    }
  }
}

/** A captured machine is a repository of its own, with the layer that its guest wrote. */
async function verifyMachine(folder: string, checks: Checks): Promise<void> {
  await verifyRepository(folder, await namesIn(repositoryFolders(folder).snapshots), checks);
  const disk = join(folder, DISK_LAYER);
  const sumPath = join(folder, DISK_SUM);
  const text = await textOf(sumPath);
  // Machines of earlier versions have no sum of their disk.
  if (text === undefined) return verifyStructure(disk, checks);
  const sum = await checks.of('sum of a disk', sumPath, async () => {
    const parsed = DiskSum.safeParse(unsealJson(text));
    if (!parsed.success) throw damaged(sumPath, 'its checksum does not hold');
    return parsed.data;
  });
  if (sum !== undefined) await checks.of('disk of a captured machine', disk, () => checkFile(disk, sum, 'disk'));
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
