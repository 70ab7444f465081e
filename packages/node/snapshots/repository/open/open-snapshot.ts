import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { HostFacts, OpenSnapshot, SnapshotManifest } from '../../contract.ts';
import { baseOf } from '../bases/memory-base.ts';
import type { MemoryBases } from '../bases/memory-bases.ts';
import { corrupt } from '../corrupt.ts';
import { DeltaReader } from '../delta/delta-reader.ts';
import { checkFile } from '../hash-file.ts';
import { incompatibility } from '../host/incompatibility.ts';
import { together } from '../in-parallel.ts';
import { exists } from '../sweep.ts';

/**
 * Checks a snapshot and makes what a VMM starts it from.
 * @param folder of the snapshot
 * @throws AenvError `snapshot_corrupt`, `snapshot_incompatible`, `no_space`, `io_failed`
 */
export async function openSnapshot(
  bases: MemoryBases,
  manifest: SnapshotManifest,
  folder: string,
  host: HostFacts,
): Promise<OpenSnapshot> {
  const { id, toolsDrive } = manifest;
  const difference = incompatibility(manifest, host);
  if (difference !== undefined) {
    throw new AenvError('snapshot_incompatible', `snapshot ${id} cannot run on this host: ${difference}`);
  }
  if (!(await exists(toolsDrive.path))) throw corrupt(`tools drive of snapshot ${id}`, `${toolsDrive.path} is missing`);
  await using taken = new Rollback();
  const deviceState = join(folder, manifest.deviceState.file);
  const [, delta, memoryBase] = await together(
    checkFile(deviceState, manifest.deviceState, `device state of snapshot ${id}`),
    openDelta(manifest, folder, taken),
    baseFile(bases, manifest),
  );
  const owned = taken.keep();
  return {
    manifest,
    image: { deviceState, memoryBase, ...(delta === undefined ? {} : { delta: delta.give }) },
    close: () => owned.run(),
  };
}

async function openDelta(
  { id, memory }: SnapshotManifest,
  folder: string,
  taken: Rollback,
): Promise<DeltaReader | undefined> {
  const { delta, memoryMb } = memory;
  if (delta === undefined) return undefined;
  const name = `memory delta of snapshot ${id}`;
  const reader = await DeltaReader.open(join(folder, delta.file), name, memoryMb * 2 ** 20, delta);
  taken.add(() => reader.close());
  return reader;
}

async function baseFile(bases: MemoryBases, manifest: SnapshotManifest): Promise<string> {
  const base = await bases.load(baseOf(manifest));
  if (base.sizeBytes === manifest.memory.memoryMb * 2 ** 20) return bases.file(base);
  throw corrupt(`memory base of snapshot ${manifest.id}`, 'it is of a memory of another size');
}
