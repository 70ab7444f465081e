import { readFile } from 'node:fs/promises';

/**
 * A process as the ledger remembers it: a pid alone may be used again, together with the start time it is one process
 * of this boot. `startTime` in clock ticks since boot (field 22 of proc_pid_stat(5)).
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: number;
}

/** The identity of a running process, or undefined when there is none (a zombie counts as none). */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  let stat: string;
  try {
    stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the name in parentheses and may hold anything, so count from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTime = Number(fields[19]);
  if (fields[0] === 'Z' || fields[0] === 'X' || !Number.isSafeInteger(startTime)) return undefined;
  return { pid, startTime };
}

/** Whether exactly this process still runs. */
export async function isAlive(process: ProcessIdentity): Promise<boolean> {
  const now = await identify(process.pid);
  return now !== undefined && now.startTime === process.startTime;
}

/**
 * Kills exactly this process (SIGKILL) and waits until it is gone.
 * @returns whether it is gone within `timeoutMs`
 */
export async function killAndWait(target: ProcessIdentity, timeoutMs = 10_000): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (await isAlive(target)) {
    try {
      process.kill(target.pid, 'SIGKILL');
    } catch {
      // gone between the look and the kill
    }
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return true;
}
