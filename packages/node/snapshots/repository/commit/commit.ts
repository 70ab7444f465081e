import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, ioError } from '@aenv/block/blob/io-error.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import type { CommitOptions, SnapshotFacts, SnapshotManifest } from '../../contract.ts';
import type { MemoryBase } from '../bases/memory-base.ts';
import type { MemoryBases } from '../bases/memory-bases.ts';
import type { DeltaWriter } from '../delta/delta-writer.ts';
import type { Faults } from '../faults.ts';
import { hashFile, syncFile } from '../hash-file.ts';
import { together } from '../in-parallel.ts';
import { DELTA_FILE, DEVICE_STATE_FILE, MANIFEST_FILE } from '../layout.ts';
import { createManifest } from '../manifest/shelf.ts';
import { derivedBase } from './derived-base.ts';

/** Share of the memory above which a delta becomes a base of its own. */
const LARGE_DELTA = 0.25;
/** The same for what several would have of one delta, beyond what one has. */
const LARGE_COPIES = 0.5;

/** A captured machine in the folder of its draft. */
export interface Captured {
  readonly id: string;
  readonly folder: string;
  readonly parent: MemoryBase;
  readonly delta: DeltaWriter;
}

export interface CommitParts {
  readonly bases: MemoryBases;
  readonly clock: Clock;
  readonly faults: Faults;
}

/**
 * Completes the folder of a draft and gives it its place among the snapshots, which is the one step that makes it
 * visible. Everything that its manifest names is on the disk before.
 * @param target folder of the snapshot; nothing is there
 */
export async function commitDraft(
  { bases, clock, faults }: CommitParts,
  captured: Captured,
  facts: SnapshotFacts,
  options: CommitOptions,
  target: string,
): Promise<SnapshotManifest> {
  const { id, folder } = captured;
  const { durable = true } = options;
  const deviceState = join(folder, DEVICE_STATE_FILE);
  const [memory, state] = await together(
    keepMemory(bases, faults, captured, options),
    together(hashFile(deviceState), durable ? syncFile(deviceState) : undefined),
  );
  const manifest: SnapshotManifest = {
    ...facts,
    id,
    createdAt: new Date(clock.now()),
    memory,
    deviceState: { file: DEVICE_STATE_FILE, ...state[0] },
  };
  const manifestFile = await createManifest(join(folder, MANIFEST_FILE), manifest);
  try {
    await faults.hit('snapshot.commit.manifest_written');
    if (durable) await together(manifestFile.sync(), syncFolder(folder));
  } catch (error) {
    throw ioError(error, folder);
  } finally {
    await manifestFile.close();
  }
  await faults.hit('snapshot.commit.before_rename');
  await place(folder, target, id, durable, faults);
  return manifest;
}

/** Ends the delta, and keeps it or makes a base of it. */
async function keepMemory(
  bases: MemoryBases,
  faults: Faults,
  { id, folder, parent, delta }: Captured,
  { asNewBase, durable = true, continued = 1 }: CommitOptions,
): Promise<SnapshotManifest['memory']> {
  await delta.seal();
  const hasChanges = delta.changedBytes > 0;
  const isLarge = delta.changedBytes > parent.sizeBytes * LARGE_DELTA;
  const areMany = delta.changedBytes * (continued - 1) > parent.sizeBytes * LARGE_COPIES;
  const becomesBase = asNewBase ?? (isLarge || areMany);
  const keepsDelta = hasChanges && !becomesBase;
  const path = join(folder, DELTA_FILE);
  const written = keepsDelta ? { delta: { file: DELTA_FILE, ...(await delta.describe(durable)) } } : {};
  await delta.close();
  await faults.hit('snapshot.commit.delta_synced');
  const base = hasChanges && becomesBase ? await derivedBase(bases, id, parent, path) : parent;
  if (base === parent) await bases.save(parent);
  if (!keepsDelta) await rm(path);
  return { memoryMb: base.sizeBytes / 2 ** 20, base: `sha256:${base.digest}`, ...written };
}

async function place(folder: string, target: string, id: string, durable: boolean, faults: Faults): Promise<void> {
  try {
    await rename(folder, target);
  } catch (error) {
    const isTaken = codeOf(error) === 'ENOTEMPTY' || codeOf(error) === 'EEXIST';
    throw isTaken ? new AenvError('snapshot_exists', `snapshot ${id} exists`) : ioError(error, target);
  }
  try {
    await faults.hit('snapshot.commit.after_rename');
    if (durable) await syncFolder(dirname(target));
  } catch (error) {
    // Nobody knows whether it would outlive a power cut, so it was not acknowledged, and must not be there.
    await rm(target, { recursive: true, force: true });
    throw ioError(error, target);
  }
}
