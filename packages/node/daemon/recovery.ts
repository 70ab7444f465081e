import type { BlockStore } from '@aenv/block/contract.ts';
import { removeStrays } from '@aenv/network/host/instance-removal.ts';
import type { EgressPolicy } from '@aenv/network/slots/contract.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Config } from '../config/schema.ts';
import { recover } from '../sandboxes/recovery/recover.ts';
import { hasCheckpoint } from '../snapshots/checkpoints.ts';
import type { SnapshotRepository } from '../snapshots/contract.ts';
import type { Ledger } from '../store/ledger.ts';
import type { SandboxRecord } from '../store/sandbox-record.ts';
import type { Folders } from './folders.ts';

export interface HostRecoveryOptions {
  readonly config: Config;
  readonly folders: Folders;
  readonly ledger: Ledger;
  readonly volumes: BlockStore;
  readonly repository: SnapshotRepository;
  readonly log: Logger;
}

/**
 * Removes what an earlier daemon has left.
 * @returns the rows of sandboxes whose VMs run on and are to be taken over
 */
export async function recoverHost(options: HostRecoveryOptions): Promise<readonly SandboxRecord[]> {
  const { config, folders, ledger, volumes, repository, log } = options;
  const { running } = await recover({
    ledger: ledger.sandboxes,
    volumes,
    hasCheckpoint: (checkpoint, drives) => hasCheckpoint(repository, volumes, checkpoint, drives),
    runtimeDir: folders.runtime,
    vmDir: folders.vms,
    vmFileDirs: [{ path: folders.serial }, { path: folders.disks }, { path: folders.memory, keep: /^zero-\d+\.mem$/ }],
    keepVms: config.recovery.action === 'adopt',
    removeNetwork: async (keep) => {
      const removed = await removeStrays({ runtimeDir: folders.runtime, keep, clock: systemClock, log });
      return Object.values(removed).reduce((sum: number, count: number) => sum + count, 0);
    },
    clock: systemClock,
    log,
  });
  const ids = new Set(running);
  return ledger.sandboxes.live().filter(({ sandboxId }) => ids.has(sandboxId));
}

/** The namespaces of sandboxes, with what their guests may reach. */
export function slotsOf(rows: readonly SandboxRecord[]): ReadonlyMap<string, EgressPolicy> {
  return new Map(
    rows.flatMap(({ netns, allowInternetAccess }) =>
      netns === undefined ? [] : [[netns, { internet: allowInternetAccess !== false }] as const],
    ),
  );
}
