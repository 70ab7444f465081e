import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { blockdFolders } from '@aenv/block/blockd/layout.ts';
import { findBlockd } from '@aenv/block/blockd/process/state.ts';
import type { TestDaemon } from '../../tests/harness/daemon.ts';

/** The kernel counts in nanoseconds there (proc_pid_schedstat, Documentation/scheduler/sched-stats). */
const NS_PER_MS = 1e6;

/** Processor time that processes with all their threads have had, in `ms`. */
export async function cpuMs(pids: readonly number[]): Promise<number> {
  const times = await Promise.all(pids.map(ofProcess));
  return times.reduce((sum, time) => sum + time, 0);
}

async function ofProcess(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = threads.map(async (thread) => {
    // A thread may end between the two calls.
    const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0');
    return Number(text.split(' ')[0]) / NS_PER_MS;
  });
  return (await Promise.all(times)).reduce((sum, time) => sum + time, 0);
}

/** Process of the block daemon that serves this daemon's disks; none before the first disk. */
export async function blockDaemonOf(daemon: TestDaemon): Promise<number[]> {
  const found = await findBlockd(blockdFolders(daemon.home, join(daemon.runtime, 'blockd')).state);
  return found === undefined ? [] : [found.process.pid];
}
