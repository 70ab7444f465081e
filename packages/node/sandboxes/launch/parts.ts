import type { BlockDevice, BlockStore, DiskOrigin } from '@aenv/block/contract.ts';
import type { DriveSource } from '@aenv/contracts/vm/drive.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { SlotPool } from '@aenv/network/slots/contract.ts';
import { allEnded } from '@aenv/platform/rollback/all-ended.ts';
import type { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { DriveStart, MachineDrive } from '../drives/contract.ts';
import { attachDrives, takeDrives } from '../drives/take-drives.ts';
import type { Stopwatch } from './phases.ts';

export interface PartsOptions {
  readonly slots: Pick<SlotPool, 'acquire' | 'release'>;
  readonly volumes: BlockStore;
}

export interface PartsRequest {
  /** names the volume */
  readonly sandboxId: string;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly internet: boolean;
  /** takes the undo of all that is taken, also when it fails half way */
  readonly resources: Rollback;
  readonly stopwatch: Stopwatch;
  readonly signal: AbortSignal;
}

/** What a VM is started with, and what the host lends for it. */
export interface Parts {
  readonly slot: NetworkSlot;
  readonly volume: BlockDevice;
  readonly drives: readonly MachineDrive[];
  readonly shape: {
    readonly cpuCount: number;
    readonly memoryMb: number;
    readonly network: NetworkSlot;
    readonly drives: readonly { readonly name: string; readonly source: DriveSource }[];
  };
}

const MIB = 1024 * 1024;

/** Slot and disks side by side. */
export async function takeParts(
  options: PartsOptions,
  request: PartsRequest,
  origin: DiskOrigin,
  starts: readonly DriveStart[],
  toolsDrive: string,
): Promise<Parts> {
  const { resources, stopwatch, signal } = request;
  const takeSlot = async () => {
    const slot = await options.slots.acquire({ internet: request.internet }, signal);
    resources.add(() => options.slots.release(slot));
    return slot;
  };
  const takeVolume = async () => {
    const volume = await options.volumes.create(request.sandboxId, { origin, sizeBytes: request.diskSizeMb * MIB });
    resources.add(() => volume.remove());
    return volume;
  };
  const [slot, volume, drives] = await allEnded([
    stopwatch.time('slot', takeSlot),
    stopwatch.time('volume', takeVolume),
    takeDrives(options.volumes, request.sandboxId, starts, resources),
  ]);
  signal.throwIfAborted();
  const shape = {
    cpuCount: request.cpuCount,
    memoryMb: request.memoryMb,
    network: slot,
    drives: [
      { name: 'root', source: await volume.attach(slot.uid) },
      { name: 'tools', source: { kind: 'file', path: toolsDrive, format: 'raw', readOnly: true } },
      ...(await attachDrives(drives, slot.uid)),
    ],
  } as const;
  return { slot, volume, drives, shape };
}
