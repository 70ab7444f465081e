import { readFile } from 'node:fs/promises';

/**
 * Memory of a process that no file has, from proc_pid_status(5), in bytes: pages of private mappings that were written to
 * count there, with the process's own heap and the rest of huge pages, so it is more than what a guest has changed. 0 for one that is gone.
 */
export async function privateBytes(pid: number): Promise<number> {
  return privateBytesOf(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''));
}

export function privateBytesOf(status: string): number {
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
  return (kibibytes('RssAnon') + kibibytes('VmSwap')) * 1024;
}
