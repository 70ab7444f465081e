import type { BlockDevice, BlockStore, DiskOrigin } from '@aenv/block/contract.ts';
import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import type { HookResult, RestoreEvent } from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { SlotPool } from '@aenv/network/slots/contract.ts';
import type { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { WaitUntilReady } from '@aenv/vmm/boot-with-retry.ts';
import type { MicroVm, VmImage, VmSpec } from '@aenv/vmm/contract/micro-vm.ts';
import type { BootParts, Checkpoints, OpenCheckpoint } from '../checkpoints/contract.ts';
import type { DriveStart, MachineDrive } from '../drives/contract.ts';
import { guestDrive } from '../drives/take-drives.ts';
import type { ConnectEnvd, InitAnswer } from '../envd-client/envd-client.ts';
import { GuestLine } from '../envd-client/request.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../faults.ts';
import type { GuestService, StartService } from '../guest-service/contract.ts';
import { type RestoreLimits, restoreGuest } from '../restoring/restore-guest.ts';
import { settle } from '../restoring/settle.ts';
import type { Standing, WarmSandboxes } from '../warm/contract.ts';
import { takeParts } from './parts.ts';
import type { Stopwatch } from './phases.ts';

/** What of a VM does not depend on the sandbox. */
export type VmParts = Pick<VmSpec, 'kernel' | 'initramfs' | 'kernelArgs'> & {
  /** read-only drive with envd */
  readonly toolsDrive: string;
};

/** All of a VM but what each attempt to boot it has anew. */
export type VmPlan = Omit<VmSpec, 'incarnation' | 'runDir' | 'serialLog'>;

/**
 * Boots a VM and waits for it, bounded, with a new incarnation for every attempt. Nothing is left when it throws.
 * `ready` is called once for each attempt and rejects with the signal's reason when the attempt is given up.
 */
export type BootVm = (sandboxId: string, plan: VmPlan, ready: WaitUntilReady, signal: AbortSignal) => Promise<MicroVm>;

/** Continues a captured machine in a VM with an incarnation of its own, standing still. Nothing is left when it throws. */
export type RestoreVm = (
  sandboxId: string,
  shape: Omit<VmPlan, 'kernel' | 'initramfs' | 'kernelArgs'>,
  image: VmImage,
  signal: AbortSignal,
) => Promise<MicroVm>;

export interface LaunchOptions {
  readonly slots: SlotPool;
  readonly volumes: BlockStore;
  readonly bootVm: BootVm;
  readonly restoreVm: RestoreVm;
  readonly connectEnvd: ConnectEnvd;
  readonly checkpoints: Pick<Checkpoints, 'open'>;
  readonly startService: StartService;
  readonly vmParts: VmParts;
  /** what of it is kept of a machine that is booted */
  readonly boot: BootParts;
  readonly restoreLimits: RestoreLimits;
  /** absent: none stand ready */
  readonly warm?: WarmSandboxes;
  readonly faults?: LifecycleFaults;
}

/** What a start begins with: a disk that is booted, or a captured machine that is continued. */
export type StartPoint =
  | { readonly kind: 'disk'; readonly disk: DiskOrigin; readonly drives?: readonly DriveStart[] }
  | {
      readonly kind: 'checkpoint';
      readonly id: string;
      readonly event: RestoreEvent;
      /** whether nothing of a user ran when it was captured; absent: something may have */
      readonly quiet?: boolean;
    };

export interface LaunchRequest {
  readonly sandboxId: string;
  readonly from: StartPoint;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly internet: boolean;
  readonly hostSecret: string;
  readonly init: InitRequest;
  /** what a guest that is booted begins with; a captured one has begun already, and has only to be ready */
  readonly service?: GuestService;
  /** takes the undo of everything that the launch takes, also when it fails half way */
  readonly resources: Rollback;
  readonly stopwatch: Stopwatch;
  readonly signal: AbortSignal;
  /** told what a crash of this daemon would leave behind, before the guest is waited for */
  readonly onVmStarted: (parts: Omit<Launched, 'answer' | 'hooks'>) => void;
}

export interface Launched {
  readonly vm: MicroVm;
  readonly slot: NetworkSlot;
  readonly volume: BlockDevice;
  readonly drives: readonly MachineDrive[];
  readonly answer: InitAnswer;
  /** what came of the hooks of a guest that was continued */
  readonly hooks: readonly HookResult[];
  readonly boot: BootParts;
}

export type Launch = (request: LaunchRequest) => Promise<Launched>;

/**
 * The journey of a start: slot and volume side by side, then the VM, then envd gets identity, secrets and environment
 * before any user code runs.
 */
export function createLaunch(options: LaunchOptions): Launch {
  const { faults = noLifecycleFaults } = options;
  return async (request) => {
    const { from, stopwatch, resources } = request;
    if (from.kind === 'disk') return await boot(options, request, from);
    const { restoreLimits: limits } = options;
    const warm = takeWarm(options, request, from);
    if (warm !== undefined) {
      try {
        await faults.hit('warm.taken');
        await warm.vm.resume();
        await faults.hit('warm.goes_on');
        // It has answered before, and there is another way.
        const guestMs = Math.min(limits.guestMs, options.warm?.answerMs ?? limits.guestMs);
        return await goOn(options, request, warm, from.event, { limits: { ...limits, guestMs } });
      } catch (error) {
        request.signal.throwIfAborted();
        await options.warm?.discard(warm, error);
      }
    }
    const checkpoint = await stopwatch.time('open', () => options.checkpoints.open(from.id));
    resources.add(() => checkpoint.close());
    const machine = await restore(options, request, checkpoint);
    // Its files are needed until the ledger knows the memory that the VM maps: a pause need not take their space any longer.
    return await goOn(options, request, machine, from.event, { limits, recorded: () => checkpoint.close() });
  };
}

async function boot(
  options: LaunchOptions,
  request: LaunchRequest,
  from: Extract<StartPoint, { kind: 'disk' }>,
): Promise<Launched> {
  const { resources, stopwatch, signal } = request;
  const { slot, volume, drives, shape } = await takeParts(
    options,
    request,
    from.disk,
    from.drives ?? [],
    options.vmParts.toolsDrive,
  );
  const mounts = drives.map(({ drive }) => guestDrive(drive));
  const init = mounts.length === 0 ? request.init : { ...request.init, drives: mounts };
  const { toolsDrive: _toolsDrive, ...parts } = options.vmParts;
  const envd = options.connectEnvd({ address: slot.hostAddress, port: ENVD_PORT });
  let answer: InitAnswer | undefined;
  const vm = await stopwatch.time('vm', () =>
    options.bootVm(
      request.sandboxId,
      { ...parts, ...shape },
      async (started, attempt, alive) => {
        request.onVmStarted({ slot, volume, drives, vm: started, boot: options.boot });
        await stopwatch.time('guest', () => envd.waitHealthy(attempt, alive));
        alive();
        // Part of the attempt: a guest that hangs in its setup is as good as one that hangs in its boot.
        const secrets = [request.hostSecret];
        answer = await settle(envd, init, { secrets, stopwatch, signal: attempt });
      },
      signal,
    ),
  );
  resources.add(() => vm.stop());
  if (answer === undefined) throw new AenvError('internal', 'a VM came up without having been asked');
  const { service } = request;
  if (service !== undefined) {
    const address = slot.hostAddress;
    await stopwatch.time('service', () => options.startService({ service, vm, address, signal }));
  }
  return { vm, slot, volume, drives, answer, hooks: [], boot: options.boot };
}

/** One that stands ready, if there is one that fits. */
function takeWarm(
  options: LaunchOptions,
  request: LaunchRequest,
  from: Extract<StartPoint, { kind: 'checkpoint' }>,
): Standing | undefined {
  // Its slot lets it out; for one that must not get out, another slot is taken.
  if (from.event !== 'create' || !request.internet) return undefined;
  const { cpuCount, memoryMb, diskSizeMb, resources } = request;
  const standing = options.warm?.take({
    checkpoint: from.id,
    quiet: from.quiet === true,
    cpuCount,
    memoryMb,
    diskSizeMb,
  });
  if (standing !== undefined) resources.add(() => standing.resources.run());
  return standing;
}

type Machine = Omit<Standing, 'resources' | 'line'> & Partial<Pick<Standing, 'line'>>;

/** A captured machine in a VM, standing still. */
async function restore(options: LaunchOptions, request: LaunchRequest, checkpoint: OpenCheckpoint): Promise<Machine> {
  const { resources, stopwatch, signal } = request;
  const { disk, drives, boot, image, hostSecret: secret } = checkpoint;
  const { shape, ...parts } = await takeParts(options, request, disk, drives, boot.toolsDrive.path);
  const vm = await stopwatch.time('vm', () => options.restoreVm(request.sandboxId, shape, image, signal));
  resources.add(() => vm.stop());
  return { vm, ...parts, boot, secret };
}

/** Lets a captured guest go on: nobody from outside reaches it before it has been brought up to date. */
async function goOn(
  options: LaunchOptions,
  request: LaunchRequest,
  { vm, slot, volume, drives, boot, secret, line: open }: Machine,
  event: RestoreEvent,
  { limits, recorded }: { readonly limits: RestoreLimits; readonly recorded?: () => Promise<void> },
): Promise<Launched> {
  const { stopwatch, signal, hostSecret, init } = request;
  request.onVmStarted({ slot, volume, drives, vm, boot });
  await recorded?.();
  using line = open ?? new GuestLine();
  const envd = options.connectEnvd({ address: slot.hostAddress, port: ENVD_PORT, line });
  await vm.resume();
  const over = new AbortController();
  const restoring = restoreGuest(
    envd,
    {
      event,
      init,
      hostSecret,
      stopwatch,
      oldSecret: secret,
      signal: AbortSignal.any([signal, over.signal]),
    },
    limits,
  );
  const died = vm.exited.then(({ lastLines }) => {
    throw new AenvError('vm_died', `the VM ended while its guest was asked: ${lastLines}`);
  });
  died.catch(() => {});
  try {
    const restored = await Promise.race([restoring, died]);
    await awaitService(options, request, { vm, address: slot.hostAddress });
    return { vm, slot, volume, drives, ...restored, boot };
  } catch (error) {
    over.abort(error);
    restoring.catch(() => {});
    signal.throwIfAborted();
    throw error;
  }
}

/** What was started before the capture runs; that its port answers is seen before anybody is told of the sandbox. */
async function awaitService(
  options: LaunchOptions,
  { service, stopwatch, signal }: LaunchRequest,
  guest: { readonly vm: MicroVm; readonly address: string },
): Promise<void> {
  if (service?.ready?.kind !== 'http') return;
  const { ready, workdir } = service;
  await stopwatch.time('service', () => options.startService({ service: { ready, workdir }, ...guest, signal }));
}
