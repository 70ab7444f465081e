import { readFile } from 'node:fs/promises';

/**
 * Proportional set size of a process in MiB: a page that several processes have counts with its share
 * (proc_pid_smaps_rollup(5), which gives kB).
 */
export async function pssOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kib = Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1]);
  if (!(kib > 0)) throw new Error(`process ${pid} has no memory; it has ended`);
  return kib / 1024;
}
