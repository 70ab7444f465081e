import { mkdir, readdir, rm, statfs } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import { identify, isAlive } from '@aenv/platform/process/identity.ts';

const MEMORY = '/dev/shm';
/** f_type of statfs(2) */
const TMPFS = 0x01021994;
/** The fast tests have some 130 MiB at once. */
const NEEDED_BYTES = 2 * 1024 ** 3;

/**
 * A folder of this run for what its tests write, with the process in its name: what runs that were killed have left is
 * removed first. The name is short, since sockets are made far below it, and their paths have 107 bytes at most.
 */
export async function openScratch(parent: string): Promise<string> {
  for (const name of await readdir(parent)) {
    const [, pid = '', startTime = ''] = /^aenv-test-([0-9a-z]+)\.([0-9a-z]+)$/.exec(name) ?? [];
    if (pid === '') continue;
    if (await isAlive({ pid: Number.parseInt(pid, 36), startTime: Number.parseInt(startTime, 36) })) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
  const startTime = (await identify(process.pid))?.startTime ?? 0;
  const folder = join(parent, `aenv-test-${process.pid.toString(36)}.${startTime.toString(36)}`);
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

/**
 * Where tests write that measure no disk: in memory where there is room, since creating, syncing and removing thousands of
 * small files on a disk is a good part of what the fast tests cost.
 * @param scratch folder of this run, which has it elsewhere
 */
export async function openTemporary(scratch: string): Promise<string> {
  const found = await statfs(MEMORY).catch(() => undefined);
  const fits = found?.type === TMPFS && found.bavail * found.bsize >= NEEDED_BYTES;
  if (fits && hasUserAttributes(release())) return await openScratch(MEMORY);
  const folder = join(scratch, 't');
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

/** Whether files in memory can have `user.*` attributes, as those of envd's tests need: from Linux 6.6 on (tmpfs(5)). */
function hasUserAttributes(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 6);
}
