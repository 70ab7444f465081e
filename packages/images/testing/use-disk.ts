/**
 * Mounts an ext4 image and uses it as a guest would: many new names in a large folder, files changed, removed and linked.
 * To be started in a mount namespace of its own.
 *
 * Arguments: the image, an empty folder, the large folder in the image.
 */
import { link, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@aenv/platform/process/run.ts';

const [disk = '', folder = '', large = ''] = process.argv.slice(2);
try {
  await run(['mount', '-t', 'ext4', '-o', 'loop', disk, folder]);
  const target = join(folder, large);
  const before = await readdir(target);
  for (let at = 0; at < 3000; at++) await writeFile(join(target, `new name number ${at}`), `content ${at}`);
  for (const name of before.filter((_, at) => at % 3 === 0)) await rm(join(target, name), { recursive: true });
  await mkdir(join(folder, 'moved'));
  for (const name of before.filter((_, at) => at % 3 === 1))
    await rename(join(target, name), join(folder, 'moved', name));
  await link(join(target, 'new name number 1'), join(folder, 'hard'));
  await symlink('t'.repeat(200), join(folder, 'soft'));
  await writeFile(join(folder, 'big'), Buffer.alloc(20 * 2 ** 20, 'big'));
  await run(['umount', folder]);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
