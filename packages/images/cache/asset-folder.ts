import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '@aenv/platform/files/durable.ts';
import { markUsed } from '@aenv/platform/files/mark-used.ts';
import { identify, isAlive } from '@aenv/platform/process/identity.ts';
import { isCode } from '../errors/is-code.ts';

const WORK = /^\.work-(\d+)-(\d+)-[0-9a-f]{12}$/;

/**
 * A folder of the cache, complete or absent: `build` fills a folder beside it, which gets its name only when all of it
 * is on stable storage. Two builders at once do the work twice and agree on one result. What a killed builder left is
 * removed by the next one.
 * @param build gets an empty folder (0755) to fill, and a scratch folder (0700) on the same file system
 * @returns path of the complete folder
 */
export async function assetFolder(
  parent: string,
  name: string,
  build: (folder: string, scratch: string) => Promise<void>,
): Promise<string> {
  const target = join(parent, name);
  if ((await isFolder(target)) && (await markUsed(target))) return target;
  await mkdir(parent, { recursive: true, mode: 0o755 });
  await removeLeftovers(parent);
  const self = await identify(process.pid);
  const work = join(parent, `.work-${process.pid}-${self?.startTime ?? 0}-${randomBytes(6).toString('hex')}`);
  try {
    // Closed to others: what is being unpacked may hold setuid programs and device nodes.
    await mkdir(work, { mode: 0o700 });
    await mkdir(join(work, 'result'), { mode: 0o755 });
    await mkdir(join(work, 'scratch'), { mode: 0o700 });
    await build(join(work, 'result'), join(work, 'scratch'));
    await syncFolder(join(work, 'result'));
    await rename(join(work, 'result'), target);
    await syncFolder(parent);
  } catch (error) {
    const otherWasFirst = isCode(error, 'ENOTEMPTY', 'EEXIST') && (await isFolder(target));
    if (!otherWasFirst) throw error;
  } finally {
    // Programs that were killed a moment ago may still be writing.
    await rm(work, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
  return target;
}

async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const [, pid, startTime] = WORK.exec(name) ?? [];
    if (pid === undefined || startTime === undefined) continue;
    if (await isAlive({ pid: Number(pid), startTime: Number(startTime) })) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isCode(error, 'ENOENT')) return false;
    throw error;
  }
}
