import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@aenv/platform/process/run.ts';

/** What a daemon boots and what its templates are made of; not what other homes refer to. */
const SHARED = [
  'base-image',
  'builtin-images',
  'builtin-layers',
  'guest',
  'layers',
  'machines',
  'rootfs',
  'test-tools',
];
const PROGRAMS = ['qemu-bookworm', 'qemu-bookworm-backports', 'apt'];

/**
 * A folder of assets for one test, which may collect all that its own homes do not need: the files of the shared one under
 * further names, so that nothing is made anew, and nothing is lost there.
 */
export async function ownAssets(): Promise<{ readonly path: string } & AsyncDisposable> {
  const shared = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';
  const path = await mkdtemp(`${shared}-test-`);
  const dispose = () => rm(path, { recursive: true, force: true });
  try {
    await chmod(path, 0o755);
    const names = [...SHARED, ...PROGRAMS].map((name) => join(shared, name));
    // Other tests make and remove things meanwhile, and not every host has all of it.
    await run(['cp', '--archive', '--link', '--', ...names, path], { okCodes: [0, 1] });
  } catch (error) {
    await dispose();
    throw error;
  }
  return { path, [Symbol.asyncDispose]: dispose };
}
