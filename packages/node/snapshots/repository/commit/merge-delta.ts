import { renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ioError } from '@aenv/block/blob/io-error.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { baseOf, type MemoryBase } from '../bases/memory-base.ts';
import type { MemoryBases } from '../bases/memory-bases.ts';
import type { Faults } from '../faults.ts';
import { DELTA_FILE, MANIFEST_FILE, NEXT_MANIFEST_FILE } from '../layout.ts';
import { createManifest, readManifest } from '../manifest/shelf.ts';
import { derivedBase } from './derived-base.ts';

export interface MergeParts {
  readonly bases: MemoryBases;
  readonly faults: Faults;
  /** Whether the removal of the snapshot has begun. */
  readonly isRemoved: () => boolean;
  /** is waited for before each part of a chunk */
  readonly pace?: () => Promise<void>;
}

/**
 * Exchanges base and delta of a snapshot for one base: the step that counts is the rename of its manifest. The file of the
 * delta stays: it may be about to be opened. For a snapshot that is removed meanwhile it ends early.
 * @returns path of the delta that is needed no more, if it was merged
 */
export async function mergeDelta(
  { bases, faults, isRemoved, pace }: MergeParts,
  folder: string,
  id: string,
): Promise<string | undefined> {
  const manifest = await readManifest(folder, id);
  const { delta, ...memory } = manifest.memory;
  if (delta === undefined) return undefined;
  const parent = await bases.load(baseOf(manifest));
  const path = join(folder, DELTA_FILE);
  const goOn = async () => {
    await pace?.();
    if (isRemoved()) throw new AenvError('snapshot_not_found', `snapshot ${id} was removed`);
  };
  let base: MemoryBase;
  try {
    base = await derivedBase(bases, id, parent, path, { expected: delta, pace: goOn });
  } catch (error) {
    if (isRemoved()) return undefined;
    throw error;
  }
  const next = join(folder, NEXT_MANIFEST_FILE);
  try {
    await rm(next, { force: true });
    const file = await createManifest(next, { ...manifest, memory: { ...memory, base: `sha256:${base.digest}` } });
    await file.sync().finally(() => file.close());
    await faults.hit('snapshot.merge.before_rename');
    // At once: a manifest that is being removed must not come back.
    if (isRemoved()) return undefined;
    renameSync(next, join(folder, MANIFEST_FILE));
    await faults.hit('snapshot.merge.after_rename');
    await syncFolder(folder);
    return path;
  } catch (error) {
    throw ioError(error, folder);
  } finally {
    await rm(next, { force: true });
  }
}
