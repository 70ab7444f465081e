import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { foldersOf } from '@aenv/node/daemon/folders.ts';
import { findVmProcesses } from '@aenv/node/sandboxes/recovery/processes.ts';
import type { TestDaemon } from './daemon.ts';

/** How much a daemon holds for sandboxes, and for checkpoints of them. */
export async function holdings(daemon: TestDaemon) {
  const { vms, snapshots, volumes } = foldersOf(daemon);
  const names = async (...path: string[]) => await readdir(join(...path)).catch(() => [] as string[]);
  const checkpoints = (await names(snapshots, 'by-id')).filter((name) => name.startsWith('c'));
  return {
    checkpoints: [...checkpoints, ...(await names(snapshots, 'transient')), ...(await names(snapshots, 'drafts'))],
    processes: (await findVmProcesses(vms)).length,
    runFolders: (await names(vms)).length,
    disks: (await names(volumes, 'disks')).length,
    disksOfCheckpoints: (await names(volumes, 'snapshots')).length,
  };
}
