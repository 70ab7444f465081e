import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, ioError } from '@aenv/block/blob/io-error.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DamagedSnapshot, SnapshotManifest } from '../../contract.ts';
import { isSnapshotId, MANIFEST_FILE } from '../layout.ts';
import { manifestText, parseManifest } from './file.ts';

const MAX_MANIFEST = 16 * 2 ** 20;

/** Writes a manifest to a file that is not there yet. @returns the file, to be synced and closed */
export async function createManifest(path: string, manifest: SnapshotManifest): Promise<FileHandle> {
  try {
    const file = await open(path, 'wx', 0o600);
    await file.writeFile(manifestText(manifest)).catch(async (error: unknown) => {
      await file.close();
      throw error;
    });
    return file;
  } catch (error) {
    throw ioError(error, path);
  }
}

/** @throws AenvError `snapshot_not_found`, `snapshot_corrupt`, `snapshot_unsupported`, `io_failed` */
export async function readManifest(folder: string, id: string): Promise<SnapshotManifest> {
  const path = join(folder, MANIFEST_FILE);
  try {
    await using file = await open(path);
    const { size } = await file.stat();
    if (size > MAX_MANIFEST) throw new AenvError('snapshot_corrupt', `${path} is larger than any manifest`);
    return parseManifest(await file.readFile('utf8'), id);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') throw new AenvError('snapshot_not_found', `no snapshot ${id}`, { cause: error });
    throw ioError(error, path);
  }
}

export interface ReadSnapshots {
  readonly manifests: readonly SnapshotManifest[];
  readonly damaged: readonly DamagedSnapshot[];
}

/** All snapshots of these folders, each with a folder of its own that has its id as its name; the oldest first. */
export async function readAll(parents: readonly string[]): Promise<ReadSnapshots> {
  const manifests: SnapshotManifest[] = [];
  const damaged: DamagedSnapshot[] = [];
  for (const parent of parents) {
    for (const id of (await readdir(parent)).filter(isSnapshotId)) {
      try {
        manifests.push(await readManifest(join(parent, id), id));
      } catch (error) {
        const isGone = error instanceof AenvError && error.code === 'snapshot_not_found';
        if (!isGone) damaged.push({ id, error: AenvError.from(error) });
      }
    }
  }
  manifests.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
  return { manifests, damaged };
}
