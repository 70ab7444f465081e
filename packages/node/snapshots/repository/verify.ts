import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { SnapshotDisk, SnapshotManifest, SnapshotVerification } from '../contract.ts';
import { checkBaseFile } from './bases/check-file.ts';
import { baseOf, chunkSize, type MemoryBase } from './bases/memory-base.ts';
import type { MemoryBases } from './bases/memory-bases.ts';
import { Checks, sizeOf } from './checks.ts';
import type { ChunkStore } from './chunks/contract.ts';
import { fetchChunk } from './chunks/memory-chunks.ts';
import { DeltaReader } from './delta/delta-reader.ts';
import { checkFile } from './hash-file.ts';
import { MANIFEST_FILE } from './layout.ts';
import { readManifest } from './manifest/shelf.ts';

export interface VerifyParts {
  readonly bases: MemoryBases;
  readonly chunks: ChunkStore;
  /** folders of the chunks and of the bases' manifests, for messages */
  readonly folders: { readonly chunks: string; readonly bases: string };
  /** digests of memory bases that need not be looked at again; those that are looked at are added */
  readonly seenBases?: Set<string>;
  /** Reads all of a snapshot's disks. */
  readonly verifyDisk: (disk: SnapshotDisk) => Promise<SnapshotVerification>;
}

/** Reads everything that a snapshot consists of. @param folder that of the snapshot */
export async function verifySnapshot(parts: VerifyParts, folder: string, id: string): Promise<SnapshotVerification> {
  const check = new Checks();
  const manifest = await check.of('manifest', join(folder, MANIFEST_FILE), () => readManifest(folder, id));
  if (manifest === undefined) return check;
  await checkOwnFiles(check, manifest, folder);
  const digest = baseOf(manifest);
  const basePath = join(parts.folders.bases, digest);
  if (parts.seenBases?.has(digest) !== true) {
    parts.seenBases?.add(digest);
    const base = await check.of('manifest of the memory base', basePath, () => parts.bases.load(digest));
    if (base !== undefined) await checkBase(check, parts, base);
  }
  for (const [name, { path }] of [
    ['kernel', manifest.kernel],
    ['tools drive', manifest.toolsDrive],
  ] as const) {
    await check.of(name, path, () => access(path));
  }
  const disk = await parts.verifyDisk(manifest.disk);
  check.checkedBytes += disk.checkedBytes;
  check.problems.push(...disk.problems);
  return check;
}

async function checkOwnFiles(check: Checks, manifest: SnapshotManifest, folder: string): Promise<void> {
  const { deviceState, memory } = manifest;
  const statePath = join(folder, deviceState.file);
  await check.of('device state', statePath, () => checkFile(statePath, deviceState, 'device state'));
  const { delta } = memory;
  if (delta === undefined) return;
  const path = join(folder, delta.file);
  await check.of('memory delta', path, async () => {
    await checkFile(path, delta, 'memory delta');
    const reader = await DeltaReader.open(path, 'memory delta', memory.memoryMb * 2 ** 20, delta);
    try {
      await reader.give({ data() {}, zero() {} });
    } finally {
      await reader.close();
    }
  });
}

async function checkBase(check: Checks, { bases, chunks, folders }: VerifyParts, base: MemoryBase): Promise<void> {
  for (const [index, digest] of base.chunks) {
    const size = chunkSize(base.sizeBytes, index);
    await check.of(`memory chunk ${index}`, join(folders.chunks, digest), () => fetchChunk(chunks, digest, size));
  }
  const file = bases.pathOf(base.digest);
  if ((await sizeOf(file)) === undefined) return;
  await check.of('file of the memory base', file, () => checkBaseFile(file, base));
}
