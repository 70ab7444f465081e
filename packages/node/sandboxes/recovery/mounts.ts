import { readFile } from 'node:fs/promises';
import { run } from '@aenv/platform/process/run.ts';

/** Mount points strictly below a folder, from proc_pid_mountinfo(5), the last mounted first. */
export function mountsBelow(mountinfo: string, folder: string): string[] {
  return mountinfo
    .split('\n')
    .map((line) => unescapeOctal(line.split(' ')[4] ?? ''))
    .filter((path) => path.startsWith(`${folder}/`))
    .reverse();
}

/** Unmounts everything below a folder. @returns what was unmounted */
export async function unmountBelow(folder: string): Promise<string[]> {
  const mounts = mountsBelow(await readFile('/proc/self/mountinfo', 'utf8'), folder);
  // Lazy: a process that still has a file open there must not keep the daemon from starting.
  for (const path of mounts) await run(['umount', '--lazy', '--', path]);
  return mounts;
}

/** Blanks, tabs, newlines and backslashes of a path stand there as \040 and so on. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
