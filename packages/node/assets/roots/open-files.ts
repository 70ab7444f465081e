import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

/** Paths below a folder that processes of this host have open or run (proc(5)); of those that it may look at. */
export async function openFilesBelow(folder: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const fds = join('/proc', pid, 'fd');
    const links = (await readdir(fds).catch(() => [])).map((fd) => join(fds, fd));
    for (const link of [...links, join('/proc', pid, 'exe')]) {
      const target = await readlink(link).catch(() => '');
      if (target.startsWith(`${folder}/`)) found.add(target.replace(/ \(deleted\)$/, ''));
    }
  }
  return found;
}
