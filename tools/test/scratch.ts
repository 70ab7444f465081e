import { mkdtemp, readdir, rm, statfs } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { identify, isAlive } from '@aenv/platform/process/identity.ts';

const MEMORY = '/dev/shm';
/** f_type of statfs(2) */
const TMPFS = 0x01021994;
/** The fast tests have some 130 MiB at once. */
const NEEDED_BYTES = 2 * 1024 ** 3;
const PREFIX = 'aenv-test-';

/**
 * A folder of this run for what its tests write, with the process in its name: what runs that were killed have left is
 * removed first.
 */
export async function openScratch(parent: string): Promise<string> {
  for (const name of await readdir(parent)) {
    const [, pid, startTime] = /^aenv-test-(\d+)-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || (await isAlive({ pid: Number(pid), startTime: Number(startTime) }))) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
  const self = await identify(process.pid);
  return await mkdtemp(join(parent, `${PREFIX}${process.pid}-${self?.startTime ?? 0}-`));
}

/**
 * Where tests write that neither pull the plug nor measure a disk: in memory where there is room, since creating, syncing
 * and removing thousands of small files on a disk was a sixth of the processor time of the fast tests.
 */
export async function fastestFolder(): Promise<string> {
  const found = await statfs(MEMORY).catch(() => undefined);
  const fits = found?.type === TMPFS && found.bavail * found.bsize >= NEEDED_BYTES;
  return fits && hasUserAttributes(release()) ? MEMORY : tmpdir();
}

/** Whether files in memory can have `user.*` attributes, as those of envd's tests need: from Linux 6.6 on (tmpfs(5)). */
function hasUserAttributes(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 6);
}
