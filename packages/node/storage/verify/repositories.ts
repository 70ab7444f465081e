import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { SnapshotDisk } from '../../snapshots/contract.ts';
import { verifyKnownFiles } from '../../snapshots/disks/verify-disk.ts';
import { MemoryBases } from '../../snapshots/repository/bases/memory-bases.ts';
import { Checks } from '../../snapshots/repository/checks.ts';
import { LocalFolder } from '../../snapshots/repository/chunks/local-folder.ts';
import { noFaults } from '../../snapshots/repository/faults.ts';
import { isSnapshotId, repositoryFolders } from '../../snapshots/repository/layout.ts';
import { verifySnapshot } from '../../snapshots/repository/verify.ts';

/**
 * Snapshots of a repository that somebody else may be using: manifests, device states, deltas, memory bases and their
 * chunks, and those layers of their disks that a manifest has digests of. The others are looked at elsewhere.
 */
export async function verifyRepository(root: string, ids: readonly string[], checks: Checks): Promise<void> {
  const folders = repositoryFolders(root);
  const chunks = LocalFolder.reading(folders.chunks);
  const manifests = LocalFolder.reading(folders.bases);
  const bases = new MemoryBases({ chunks, manifests, folder: folders.memory, faults: noFaults });
  // Snapshots of one template share their base.
  const seenBases = new Set<string>();
  const verifyDisk = async (disk: SnapshotDisk) => {
    const found = new Checks();
    await verifyKnownFiles(disk, found);
    return found;
  };
  for (const id of ids.filter(isSnapshotId)) {
    try {
      const found = await verifySnapshot(
        { bases, chunks, folders, seenBases, verifyDisk },
        join(folders.snapshots, id),
        id,
      );
      checks.checkedBytes += found.checkedBytes;
      checks.problems.push(...found.problems);
    } catch (error) {
      // It was removed a moment ago.
      if (!(error instanceof AenvError) || error.code !== 'snapshot_not_found') throw error;
    }
  }
}
