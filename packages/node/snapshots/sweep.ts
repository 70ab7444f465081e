import type { BlockStore } from '@aenv/block/contract.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { SnapshotRepository } from './contract.ts';
import { checkpointOf } from './disks/disk-state.ts';

export interface SweepOptions {
  readonly repository: SnapshotRepository;
  readonly volumes: Pick<BlockStore, 'listSnapshots' | 'removeSnapshot'>;
  /** ids of the checkpoints of paused sandboxes, of snapshots, and of captured templates */
  readonly needed: ReadonlySet<string>;
  /** files that the memory of VMs is mapped from which have outlived an earlier daemon */
  readonly memoryBases: readonly string[];
  readonly log: Logger;
}

/**
 * Removes what an earlier daemon kept and nobody needs any more: checkpoints of sandboxes that are over or run again,
 * captured templates of before a change, snapshots that nobody was told of, and disks without a manifest. To be called
 * before any VM is started.
 */
export async function sweepSnapshots({ repository, volumes, needed, memoryBases, log }: SweepOptions): Promise<void> {
  const kept = new Set<string>();
  let removed = 0;
  for (const { id } of await repository.list()) {
    if (needed.has(id)) {
      kept.add(id);
      continue;
    }
    await repository.remove(id);
    removed++;
  }
  // One that cannot be read may still be mended, and its disk is needed then.
  for (const { id } of await repository.damaged()) kept.add(id);
  for (const id of await volumes.listSnapshots()) {
    // A pause without memory keeps disks and nothing else.
    if (kept.has(checkpointOf(id)) || needed.has(checkpointOf(id))) continue;
    await volumes.removeSnapshot(id);
    removed++;
  }
  const report = await repository.gc({ memoryBases: () => memoryBases });
  if (removed > 0) log.info('snapshots swept', { removed, ...report });
}
