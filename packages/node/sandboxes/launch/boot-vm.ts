import { join } from 'node:path';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { bootWithRetry } from '@aenv/vmm/boot-with-retry.ts';
import type { VmDriver } from '@aenv/vmm/contract/micro-vm.ts';
import { newIncarnation } from '../identity.ts';
import type { BootVm, RestoreVm } from './launch.ts';
import type { SerialLogs } from './serial-logs.ts';

export interface BootVmOptions {
  readonly driver: VmDriver;
  /** folder of the run folders; short, since control sockets lie below it */
  readonly vmDir: string;
  readonly serialLogs: SerialLogs;
  /** boots that are tried */
  readonly attempts: number;
  /** time that a boot may go without a sign of life, in `ms` */
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** Boots VMs with a driver; each attempt has an incarnation, a run folder and a console log of its own. */
export function createBootVm(options: BootVmOptions): BootVm {
  const { driver, vmDir, serialLogs, attempts, timeoutMs, log } = options;
  return async (sandboxId, plan, ready, signal) => {
    let previous: string | undefined;
    const { vm } = await bootWithRetry(
      driver,
      async () => {
        // What the attempt before died of is in the message by now.
        if (previous !== undefined) await serialLogs.discard(previous);
        const incarnation = newIncarnation(sandboxId);
        previous = incarnation;
        return { ...plan, incarnation, runDir: join(vmDir, incarnation), serialLog: serialLogs.pathOf(incarnation) };
      },
      ready,
      { attempts, hangMs: timeoutMs, log },
      signal,
    );
    return vm;
  };
}

/** Continues captured machines with a driver. */
export function createRestoreVm(options: Pick<BootVmOptions, 'driver' | 'vmDir' | 'serialLogs'>): RestoreVm {
  const { driver, vmDir, serialLogs } = options;
  return async (sandboxId, shape, image, signal) => {
    const incarnation = newIncarnation(sandboxId);
    const places = { incarnation, runDir: join(vmDir, incarnation), serialLog: serialLogs.pathOf(incarnation) };
    return await driver.restore({ ...shape, ...places }, image, signal);
  };
}
