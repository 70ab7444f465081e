import { randomUUID } from 'node:crypto';
import { constants, copyFile, link, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, ioError } from '@aenv/block/blob/io-error.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import type { SnapshotManifest } from '../contract.ts';
import { TEMPORARY } from './bases/base-file.ts';
import { baseOf } from './bases/memory-base.ts';
import type { MemoryBases } from './bases/memory-bases.ts';
import { syncFile } from './hash-file.ts';
import { MANIFEST_FILE, type RepositoryFolders, repositoryFolders } from './layout.ts';
import { readManifest } from './manifest/shelf.ts';
import { exists } from './sweep.ts';

/**
 * Takes a snapshot over from the folder of another repository. What is in files that never change is shared with it where
 * both are on one file system, and copied where they are not; the bytes are checked when they are used, as always.
 * @throws AenvError `snapshot_not_found`, `snapshot_corrupt`, `no_space`, `io_failed`
 */
export async function adoptSnapshot(
  { folders, bases }: { readonly folders: RepositoryFolders; readonly bases: MemoryBases },
  from: { readonly root: string; readonly bases: MemoryBases },
  id: string,
): Promise<SnapshotManifest> {
  const source = repositoryFolders(from.root);
  const sourceFolder = join(source.snapshots, id);
  const manifest = await readManifest(sourceFolder, id);
  const base = await from.bases.load(baseOf(manifest));
  for (const digest of new Set(base.chunks.values())) await share(join(source.chunks, digest), folders.chunks, digest);
  await syncFolder(folders.chunks);
  await bases.save(base);
  const file = from.bases.pathOf(base.digest);
  if (base.chunks.size > 0 && (await exists(file))) await share(file, folders.memory, `${base.digest}.mem`);
  await syncFolder(folders.memory);

  const draft = join(folders.drafts, randomUUID());
  try {
    await mkdir(draft, { mode: 0o700 });
    for (const name of await readdir(sourceFolder)) await share(join(sourceFolder, name), draft, name);
    await syncFolder(draft);
    await rename(draft, join(folders.snapshots, id));
    await syncFolder(folders.snapshots);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Whoever was first has brought the same.
    const isTaken = codeOf(error) === 'ENOTEMPTY' || codeOf(error) === 'EEXIST';
    if (!isTaken || !(await exists(join(folders.snapshots, id, MANIFEST_FILE)))) throw ioError(error, draft);
  }
  return manifest;
}

/** A name for the same file, or a copy of it; nothing if the name is taken. */
async function share(path: string, folder: string, name: string): Promise<void> {
  const target = join(folder, name);
  try {
    await link(path, target);
    return;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    if (codeOf(error) !== 'EXDEV' && codeOf(error) !== 'EPERM' && codeOf(error) !== 'EMLINK')
      throw ioError(error, target);
  }
  const temporary = join(dirname(target), `${randomUUID()}${TEMPORARY}`);
  try {
    await copyFile(path, temporary, constants.COPYFILE_FICLONE);
    await syncFile(temporary);
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw ioError(error, target);
  }
}
