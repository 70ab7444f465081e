import type { BlockDevice, BlockStore } from '@aenv/block/contract.ts';
import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { SlotPool } from '@aenv/network/slots/contract.ts';
import type { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { WaitUntilReady } from '@aenv/vmm/boot-with-retry.ts';
import type { MicroVm, VmSpec } from '@aenv/vmm/contract/micro-vm.ts';
import type { Template } from '../../templates/contract.ts';
import type { ConnectEnvd, InitAnswer } from '../envd-client/envd-client.ts';
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

export interface LaunchOptions {
  readonly slots: SlotPool;
  readonly volumes: BlockStore;
  readonly bootVm: BootVm;
  readonly connectEnvd: ConnectEnvd;
  readonly vmParts: VmParts;
}

export interface LaunchRequest {
  readonly sandboxId: string;
  readonly template: Template;
  readonly internet: boolean;
  readonly hostSecret: string;
  readonly init: InitRequest;
  /** takes the undo of everything that the launch takes, also when it fails half way */
  readonly resources: Rollback;
  readonly stopwatch: Stopwatch;
  readonly signal: AbortSignal;
  /** told what a crash of this daemon would leave behind, before the guest is waited for */
  readonly onVmStarted: (parts: { slot: NetworkSlot; volume: BlockDevice; vm: MicroVm }) => void;
}

export interface Launched {
  readonly vm: MicroVm;
  readonly slot: NetworkSlot;
  readonly answer: InitAnswer;
}

export type Launch = (request: LaunchRequest) => Promise<Launched>;

const MIB = 1024 * 1024;

/**
 * The journey of a start: slot and volume side by side, then the VM, then envd gets identity, secrets and environment
 * before any user code runs.
 */
export function createLaunch(options: LaunchOptions): Launch {
  async function takeSlot({ internet, resources, signal }: LaunchRequest): Promise<NetworkSlot> {
    const slot = await options.slots.acquire({ internet }, signal);
    resources.add(() => options.slots.release(slot));
    return slot;
  }

  async function takeVolume({ sandboxId, template, resources }: LaunchRequest): Promise<BlockDevice> {
    const volume = await options.volumes.create(sandboxId, {
      origin: { kind: 'layers', layers: template.source.layers },
      sizeBytes: template.diskSizeMb * MIB,
    });
    resources.add(() => volume.remove());
    return volume;
  }

  return async (request) => {
    const { template, resources, stopwatch, signal } = request;
    const { slot, volume } = await both(
      stopwatch.time('slot', () => takeSlot(request)),
      stopwatch.time('volume', () => takeVolume(request)),
    );
    signal.throwIfAborted();
    const root = await volume.attach(slot.uid);
    const { toolsDrive, ...parts } = options.vmParts;
    const plan: VmPlan = {
      ...parts,
      cpuCount: template.cpuCount,
      memoryMb: template.memoryMb,
      network: slot,
      drives: [
        { name: 'root', source: root },
        { name: 'tools', source: { kind: 'file', path: toolsDrive, format: 'raw', readOnly: true } },
      ],
    };
    const envd = options.connectEnvd({
      address: slot.hostAddress,
      port: ENVD_PORT,
      hostSecret: request.hostSecret,
    });
    let answer: InitAnswer | undefined;
    const vm = await stopwatch.time('vm', () =>
      options.bootVm(
        request.sandboxId,
        plan,
        async (started, attempt, alive) => {
          request.onVmStarted({ slot, volume, vm: started });
          await stopwatch.time('guest', () => envd.waitHealthy(attempt, alive));
          alive();
          // Part of the attempt: a guest that hangs in its setup is as good as one that hangs in its boot.
          answer = await stopwatch.time('init', () => envd.init(request.init, attempt));
        },
        signal,
      ),
    );
    resources.add(() => vm.stop());
    if (answer === undefined) throw new AenvError('internal', 'a VM came up without having been asked');
    return { vm, slot, answer };
  };
}

/** Waits for both also when one fails: what the other one takes must be known before it is undone. */
async function both(
  slot: Promise<NetworkSlot>,
  volume: Promise<BlockDevice>,
): Promise<{ slot: NetworkSlot; volume: BlockDevice }> {
  await Promise.allSettled([slot, volume]);
  return { slot: await slot, volume: await volume };
}
