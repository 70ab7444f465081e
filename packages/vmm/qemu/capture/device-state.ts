import { chmod, chown, copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { allEnded } from '@aenv/platform/rollback/all-ended.ts';
import type { QmpClient } from '../qmp/client.ts';
import { isRecord } from '../qmp/message.ts';

const SAVE_TIMEOUT_MS = 30_000;
const LOAD_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 10_000;

/** The file by which QEMU and this process hand the state over: the VM's user can reach nothing else. */
const stateFile = (runDir: string): string => join(runDir, 'device.state');

/**
 * Has QEMU write the state of processors and devices, without memory and drives. `live: false` leaves the drives active,
 * so that the VM can go on.
 * @param meanwhile is done beside it. It may read the guest's memory, which QEMU does not touch for it: a migration sends the
 *   last of the memory before the state of the devices, too
 */
export async function saveDeviceState(
  qmp: QmpClient,
  runDir: string,
  target: string,
  meanwhile: () => Promise<void>,
): Promise<void> {
  await allEnded([save(qmp, stateFile(runDir), target), meanwhile()]);
}

async function save(qmp: QmpClient, path: string, target: string): Promise<void> {
  try {
    await qmp.execute('xen-save-devices-state', { filename: path, live: false }, SAVE_TIMEOUT_MS);
    await copyFile(path, target);
    await chmod(target, 0o600);
  } finally {
    await rm(path, { force: true });
  }
}

/**
 * Has a QEMU that waits for it (`-incoming defer`) load the state. `xen-load-devices-state` would be its counterpart, but
 * aborts QEMU after the load.
 */
export async function loadDeviceState(qmp: QmpClient, runDir: string, uid: number, source: string): Promise<void> {
  const path = stateFile(runDir);
  try {
    await copyFile(source, path);
    await chmod(path, 0o400);
    await chown(path, uid, uid);
    await qmp.execute('migrate-incoming', { uri: `file:${path}` }, COMMAND_TIMEOUT_MS);
    await loaded(qmp);
  } finally {
    await rm(path, { force: true });
  }
}

async function loaded(qmp: QmpClient): Promise<void> {
  const deadline = Date.now() + LOAD_TIMEOUT_MS;
  for (;;) {
    const answer = await qmp.execute('query-migrate', {}, COMMAND_TIMEOUT_MS);
    const { status, 'error-desc': why } = isRecord(answer) ? answer : {};
    if (status === 'completed') return;
    if (status === 'failed')
      throw new AenvError('restore_failed', `QEMU could not load the state: ${why ?? 'no reason'}`);
    if (Date.now() > deadline) throw new AenvError('restore_failed', 'QEMU did not load the state in time');
    await delay(2);
  }
}
