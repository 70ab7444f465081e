import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Whether a process runs. A zombie that waits for this host's init is as dead as one that is gone. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Whether a process that was killed is gone within `ms`: a signal takes its time on a busy host. */
export async function isSoonGone(pid: number, ms = 3_000): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end; await delay(10)) if (!isAlive(pid)) return true;
  return false;
}
