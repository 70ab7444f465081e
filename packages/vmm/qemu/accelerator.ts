import { stat } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { AcceleratorCache } from './accelerator-cache.ts';
import type { QemuInstall } from './install/qemu-install.ts';
import { type Accelerator, type AcceleratorChoice, machineArguments } from './machine.ts';

export interface ChooseAcceleratorOptions {
  readonly install: QemuInstall;
  /** the kernel that VMs boot */
  readonly kernel: { readonly path: string; readonly digest: string };
  /** where the answer is kept until the host boots anew or QEMU or the kernel change */
  readonly assetsDir: string;
  /** `auto` tries; the others are answered as they are */
  readonly mode: 'auto' | Accelerator;
  readonly log: Logger;
  readonly signal?: AbortSignal;
  /** limit of the test boot, default 3,000 `ms` */
  readonly limitMs?: number;
  /** default /dev/kvm */
  readonly device?: string;
}

/** Where a kernel without any root ends; it has brought up timers, scheduler and devices by then. */
const REACHED_THE_END = /Kernel panic - not syncing: VFS|Unable to mount root/;

/**
 * Whether VMs use KVM. A test boot decides: a device node says nothing, since there are hosts where it can be opened
 * and guests hang on it.
 * @throws AenvError `host_unsupported` when KVM is demanded and there is no device
 */
export async function chooseAccelerator(options: ChooseAcceleratorOptions): Promise<AcceleratorChoice> {
  const { mode, device = '/dev/kvm', log } = options;
  if (mode === 'tcg') return { accelerator: 'tcg', reason: 'the configuration says so' };
  const present = (await stat(device).catch(() => undefined)) !== undefined;
  if (mode === 'kvm') {
    if (present) return { accelerator: 'kvm', reason: 'the configuration says so' };
    throw new AenvError('host_unsupported', `the configuration demands KVM, but this host has no ${device}`, {
      remediation: 'Enable virtualisation and load the kvm module, or let the accelerator be chosen (`auto`).',
    });
  }
  if (!present) return { accelerator: 'tcg', reason: `this host has no ${device}` };

  const cache = await AcceleratorCache.open(options.assetsDir, options.install.version, options.kernel.digest);
  const known = await cache.read();
  if (known !== undefined) return known;
  const failure = await testBoot(options.install, options.kernel.path, 'kvm', '', options);
  const choice: AcceleratorChoice =
    failure === undefined
      ? { accelerator: 'kvm', reason: 'a test boot with KVM went well' }
      : { accelerator: 'tcg', reason: `a test boot with KVM failed: ${failure}` };
  log.info('accelerator chosen', { ...choice });
  await cache.write(choice);
  return choice;
}

/**
 * Boots the kernel without a root, so that it panics, and QEMU ends when it does.
 * @param kernelArgs further arguments that the accelerator needs
 * @returns what went wrong, or undefined
 */
export async function testBoot(
  install: QemuInstall,
  kernel: string,
  accelerator: Accelerator,
  kernelArgs: string,
  limits: { readonly limitMs?: number; readonly signal?: AbortSignal } = {},
): Promise<string | undefined> {
  const { limitMs = 3_000, signal } = limits;
  try {
    const { stdout } = await run(
      [
        install.system,
        ...machineArguments(install, accelerator),
        ...['-m', '128M', '-serial', 'stdio', '-kernel', kernel],
        ...['-append', `console=ttyS0 quiet loglevel=1 panic=-1 cryptomgr.notests=1 ${kernelArgs}`],
      ],
      {
        env: { PATH: process.env.PATH, ...install.env },
        timeoutMs: limitMs,
        maxOutput: 1024 * 1024,
        ...(signal === undefined ? {} : { signal }),
      },
    );
    return REACHED_THE_END.test(stdout) ? undefined : 'the kernel did not come up';
  } catch (error) {
    signal?.throwIfAborted();
    return error instanceof Error ? error.message : String(error);
  }
}
