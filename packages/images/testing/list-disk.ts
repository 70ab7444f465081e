/**
 * Prints the listing of an ext4 image as JSON, as the kernel has it. To be started in a mount namespace of its own, with
 * which the mount ends: `listDisk` does it.
 *
 * Arguments: the image, an empty folder.
 */
import { run } from '@aenv/platform/process/run.ts';
import { listTree } from './tree-listing.ts';

const [disk = '', folder = ''] = process.argv.slice(2);
try {
  await run(['mount', '-t', 'ext4', '-o', 'loop,ro,noatime', disk, folder]);
  process.stdout.write(JSON.stringify([...(await listTree(folder))]));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
