import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

/** Paths below a folder that processes of this host have open (proc(5)); of those that it may look at. */
export async function openFilesBelow(folder: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const fds = join('/proc', pid, 'fd');
    for (const fd of await readdir(fds).catch(() => [])) {
      const target = await readlink(join(fds, fd)).catch(() => '');
      if (target.startsWith(`${folder}/`)) found.add(target.replace(/ \(deleted\)$/, ''));
    }
  }
  return found;
}
