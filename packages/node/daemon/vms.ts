import { kernelArgs, measureTscKhz } from '@aenv/guest/kernel-args.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { VmDriver } from '@aenv/vmm/contract/micro-vm.ts';
import { chooseAccelerator } from '@aenv/vmm/qemu/accelerator.ts';
import { createQemuDriver } from '@aenv/vmm/qemu/driver.ts';
import type { Config } from '../config/schema.ts';
import type { AdoptionOptions } from '../sandboxes/adoption/adopt.ts';
import type { VmParts } from '../sandboxes/launch/launch.ts';
import type { BootArtefact, HostFacts } from '../snapshots/contract.ts';
import { readCpuFacts } from '../snapshots/repository/host/cpu-facts.ts';
import type { Assets } from './assets.ts';
import type { Folders } from './folders.ts';
import { objectionTo } from './vm-objection.ts';

/** How VMs run on this host. */
export interface Vms {
  readonly driver: VmDriver;
  readonly parts: VmParts;
  /** why this daemon cannot manage a VM of an earlier one as its own; undefined when it can */
  readonly objection: AdoptionOptions['objection'];
  /** what a captured machine must have been made on to be continued here */
  readonly host: HostFacts;
  /** what machines are booted from, for their manifests */
  readonly boot: { readonly kernel: BootArtefact; readonly toolsDrive: BootArtefact };
}

export async function prepareVms(
  { qemu, guest }: Pick<Assets, 'qemu' | 'guest'>,
  folders: Folders,
  config: Config,
  log: Logger,
  signal: AbortSignal,
): Promise<Vms> {
  const [{ accelerator, reason }, tscKhz] = await Promise.all([
    chooseAccelerator({
      install: qemu,
      kernel: guest.kernel,
      assetsDir: config.assets,
      mode: config.vmm.accelerator,
      log,
      signal,
    }),
    measureTscKhz(guest.native, signal),
  ]);
  log.info('VMM ready', { qemu: qemu.version, accelerator, reason, kernel: guest.kernel.version });
  const driver = createQemuDriver({ install: qemu, accelerator, memoryDir: folders.memory, log });
  const { kernel, tools } = guest;
  return {
    driver,
    objection: (of, slot) => objectionTo(of, slot, { program: qemu.system, toolsDrive: tools.path }),
    host: { kind: driver.kind, build: driver.build, cpu: await readCpuFacts(tscKhz) },
    boot: {
      kernel: { digest: kernel.digest, path: kernel.path },
      toolsDrive: { digest: tools.digest, path: tools.path },
    },
    parts: {
      kernel: guest.kernel.path,
      initramfs: guest.initramfs.path,
      toolsDrive: guest.tools.path,
      // The name is that of a guest which envd has not named yet.
      kernelArgs: kernelArgs({ accelerator, tscKhz, toolsUuid: guest.tools.uuid, hostname: 'sandbox' }),
    },
  };
}
