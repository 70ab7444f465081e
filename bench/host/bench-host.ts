import { join } from 'node:path';
import { AssetCache } from '@aenv/guest/cache/asset-cache.ts';
import type { GuestAssets } from '@aenv/guest/contract.ts';
import { buildKernel } from '@aenv/guest/kernel/build.ts';
import { kernelArgs, measureTscKhz } from '@aenv/guest/kernel-args.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { chooseAccelerator } from '@aenv/vmm/qemu/accelerator.ts';
import type { QemuInstall } from '@aenv/vmm/qemu/install/qemu-install.ts';
import type { Accelerator } from '@aenv/vmm/qemu/machine.ts';
import { loadConfig } from '../../packages/node/config/load.ts';
import { loadAssets } from '../../packages/node/daemon/assets.ts';
import { buildPrograms, type GuestPrograms } from '../guest/programs.ts';
import { type MachineFacts, machineFacts } from './machine.ts';

/** What the product runs on here, and what the bench puts beside it. */
export interface BenchHost {
  readonly qemu: QemuInstall;
  readonly accelerator: Accelerator;
  readonly guest: GuestAssets;
  /** the product's kernel command line without the words that only its init reads */
  readonly kernelArgs: string;
  /** archive of the modules of the kernel, for an initramfs of one's own */
  readonly modules: string;
  readonly programs: GuestPrograms;
  readonly facts: MachineFacts;
}

/** Finds everything in the caches, or builds it. The host must have been prepared. */
export async function openHost(signal: AbortSignal): Promise<BenchHost> {
  const config = loadConfig({ env: process.env });
  const log = silentLogger;
  const { qemu, guest } = await loadAssets(config, log, signal);
  const folder = join(config.assets, 'guest');
  const cache = new AssetCache(folder);
  const { modules } = await buildKernel(cache, folder, { workDir: join(folder, 'debian'), log, signal });
  const programs = await buildPrograms(cache, signal);
  const { accelerator } = await chooseAccelerator({
    install: qemu,
    kernel: guest.kernel,
    assetsDir: config.assets,
    mode: config.vmm.accelerator,
    log,
    signal,
  });
  const tscKhz = await measureTscKhz(guest.native, signal);
  const words = kernelArgs({ accelerator, tscKhz, toolsUuid: guest.tools.uuid, hostname: 'bench' }).split(' ');
  return {
    qemu,
    accelerator,
    guest,
    kernelArgs: words.filter((word) => !word.startsWith('aenv.')).join(' '),
    modules,
    programs,
    facts: await machineFacts({ qemu: qemu.version, accelerator, guestKernel: guest.kernel.version }),
  };
}
