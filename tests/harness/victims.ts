import assert from 'node:assert/strict';
import { join } from 'node:path';
import { blockdFolders } from '@aenv/block/blockd/layout.ts';
import { findBlockd } from '@aenv/block/blockd/process/state.ts';
import { foldersOf } from '@aenv/node/daemon/folders.ts';
import { findVmProcesses } from '@aenv/node/sandboxes/recovery/processes.ts';
import { killAndWait } from '@aenv/platform/process/identity.ts';
import type { TestDaemon } from './daemon.ts';

export const VICTIMS = ['vm', 'daemon', 'blockd'] as const;
export type Victim = (typeof VICTIMS)[number];

/** `kill -9` of the daemon, of its block daemon, or of all its VMs, and waits for their end. */
export async function kill(daemon: TestDaemon, victim: Victim): Promise<void> {
  if (victim === 'daemon') return await daemon.crash();
  const { volumes, vms } = foldersOf(daemon);
  if (victim === 'vm') {
    await Promise.all((await findVmProcesses(vms)).map((process) => killAndWait(process)));
    return;
  }
  const found = await findBlockd(blockdFolders(volumes, join(daemon.runtime, 'blockd')).state);
  assert.ok(found !== undefined, 'the block daemon runs');
  await killAndWait(found.process);
}
