import { access, constants, mkdir } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ensureGuestAssets } from '@aenv/guest/assets.ts';
import { ensureBaseImage } from '@aenv/images/base/build.ts';
import { convertLayout } from '@aenv/images/convert/from-layout.ts';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import { assertSearchable } from '@aenv/platform/files/reachable.ts';
import { ensureQemu } from '@aenv/vmm/qemu/install/ensure.ts';
import type { Config } from '../../config/schema.ts';
import { layersOf } from '../../daemon/assets.ts';
import type { Progress } from '../terminal/progress.ts';
import { HOST_PACKAGES } from './host-packages.ts';

/**
 * Makes this host able to run sandboxes: packages, then QEMU, what microVMs boot and the base image side by side. All of
 * it is cached, so that a second call only looks.
 * @throws AenvError of the first part that fails; the others are cancelled. The signal's reason.
 */
export async function prepareHost(config: Config, progress: Progress, signal: AbortSignal): Promise<void> {
  await makeFolders(config);
  await progress.step('packages', (log) => installPackages(HOST_PACKAGES, { log, signal }));

  const failure = new AbortController();
  const any = AbortSignal.any([signal, failure.signal]);
  const { assets } = config;
  const parts = [
    progress.step('QEMU', (log) => prepareQemu(config, { assetsDir: assets, log, signal: any })),
    progress.step('kernel and tools of microVMs', (log) => ensureGuestAssets({ assetsDir: assets, log, signal: any })),
    progress.step('base image', async (log) => {
      const { layoutDir } = await ensureBaseImage({ assetsDir: assets, log, signal: any });
      await convertLayout(layoutDir, { layersDir: layersOf(assets), log, signal: any });
    }),
  ];
  for (const part of parts) part.catch((error: unknown) => failure.abort(error));
  // Only when all have let go of what they were doing is it safe to leave.
  await Promise.allSettled(parts);
  signal.throwIfAborted();
  failure.signal.throwIfAborted();
}

/** Virtual machines run as users without rights and must get through to their disks, but need not see what is there. */
async function makeFolders(config: Config): Promise<void> {
  await mkdir(config.home, { recursive: true, mode: 0o711 });
  await mkdir(config.assets, { recursive: true, mode: 0o755 });
  await assertSearchable(config.home);
  await assertSearchable(config.assets);
}

async function prepareQemu(config: Config, options: Parameters<typeof ensureQemu>[0]): Promise<void> {
  const own = config.vmm.qemu;
  if (own === undefined) {
    await ensureQemu(options);
    return;
  }
  try {
    await access(own, constants.X_OK);
  } catch (error) {
    throw new AenvError('qemu_missing', `${own} (vmm.qemu) is no program that can be run`, {
      remediation: 'Correct `vmm.qemu` (AENV_VMM_QEMU), or leave it out.',
      cause: error,
    });
  }
}
