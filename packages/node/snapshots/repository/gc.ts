import type { GcReport, GcRoots } from '../contract.ts';
import { baseOf } from './bases/memory-base.ts';
import type { MemoryBases } from './bases/memory-bases.ts';
import type { ChunkStore, StoredChunk } from './chunks/contract.ts';
import type { Faults } from './faults.ts';
import type { Uses } from './locks/uses.ts';
import type { ReadSnapshots } from './manifest/shelf.ts';

export interface GcParts {
  readonly bases: MemoryBases;
  readonly chunks: ChunkStore;
  readonly baseManifests: ChunkStore;
  /** bases of open snapshots and of drafts */
  readonly baseUses: Uses;
  readonly faults: Faults;
}

/**
 * Removes memory bases that no snapshot, no use and no VM has, then the chunks of no base. Nobody may commit meanwhile;
 * opening may go on, as it takes its use of the base and then makes sure that the snapshot is still there. When the
 * collection is cut short, the next one does the rest.
 * @param readSnapshots is called before uses and VMs are asked: a base goes from one to the next
 */
export async function collectGarbage(
  parts: GcParts,
  readSnapshots: () => Promise<ReadSnapshots>,
  roots: GcRoots,
): Promise<GcReport> {
  const { bases, chunks, baseManifests, baseUses, faults } = parts;
  const report = { bases: 0, chunks: 0, files: 0, freedBytes: 0 };
  const snapshots = await readSnapshots();
  const ofVms = () => [...roots.memoryBases()].map((path) => bases.digestOf(path));
  const needed = new Set([...snapshots.manifests.map(baseOf), ...baseUses.keys(), ...ofVms()]);

  const stored: StoredChunk[] = [];
  for await (const manifest of baseManifests.list()) stored.push(manifest);
  const kept = stored.map(({ key }) => key).filter((key) => needed.has(key));
  const chunksOfKept = await chunksOf(kept, bases);
  const blockedBy = [
    ...snapshots.damaged,
    ...snapshots.manifests.filter((manifest) => !chunksOfKept.has(baseOf(manifest))),
  ].map(({ id }) => id);
  if (blockedBy.length > 0) return { ...report, blockedBy };

  const remove = async (store: ChunkStore, { key, sizeBytes }: StoredChunk) => {
    await store.delete(key);
    report.freedBytes += sizeBytes;
  };
  for (const manifest of stored) {
    if (needed.has(manifest.key)) continue;
    await remove(baseManifests, manifest);
    report.bases++;
    await faults.hit('snapshot.gc.base_removed');
  }
  for (const digest of await bases.files()) {
    if (needed.has(digest) && !roots.dropUnusedFiles) continue;
    const freed = await bases.removeFile(digest, () => baseUses.has(digest) || ofVms().includes(digest));
    if (freed === undefined) continue;
    report.files++;
    report.freedBytes += freed;
  }
  const referenced = new Set([...chunksOfKept.values()].flat());
  for await (const chunk of chunks.list()) {
    if (referenced.has(chunk.key)) continue;
    await remove(chunks, chunk);
    report.chunks++;
    await faults.hit('snapshot.gc.chunk_removed');
  }
  return { ...report, blockedBy };
}

/** Chunks by base; a base that cannot be read is left out. */
async function chunksOf(digests: readonly string[], bases: MemoryBases): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const digest of digests) {
    const base = await bases.load(digest).catch(() => undefined);
    if (base !== undefined) found.set(digest, [...base.chunks.values()]);
  }
  return found;
}
