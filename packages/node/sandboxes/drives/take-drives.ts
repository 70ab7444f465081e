import type { BlockStore } from '@aenv/block/contract.ts';
import type { GuestDrive } from '@aenv/contracts/envd/host-api.ts';
import { allEnded } from '@aenv/platform/rollback/all-ended.ts';
import type { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { VmDrive } from '@aenv/vmm/contract/micro-vm.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';
import type { AttachedDrive, DriveStart, MachineDrive } from './contract.ts';

const MIB = 1024 * 1024;

/** Volume of a drive; that of the root is named like the sandbox. */
function driveVolumeId(sandboxId: string, number: number): string {
  return `${sandboxId}-${number}`;
}

/** Volumes of the drives of a sandbox, in their order. */
export function driveVolumeIds({ sandboxId, drives }: Pick<SandboxRecord, 'sandboxId' | 'drives'>): readonly string[] {
  return drives.map((_drive, at) => driveVolumeId(sandboxId, at + 1));
}

/** Makes the disks of drives, in their order. All have been tried when it throws, and are in `resources`. */
export async function takeDrives(
  volumes: BlockStore,
  sandboxId: string,
  starts: readonly DriveStart[],
  resources: Rollback,
): Promise<readonly MachineDrive[]> {
  return await allEnded(
    starts.map(async ({ drive, disk }, at) => {
      const id = driveVolumeId(sandboxId, at + 1);
      const volume = await volumes.create(id, { origin: disk, sizeBytes: drive.sizeMb * MIB });
      resources.add(() => volume.remove());
      return { drive, volume };
    }),
  );
}

/** The drives as a VM of this user opens them. What is read-only is so for the VM, whatever its guest tries. */
export function attachDrives(drives: readonly MachineDrive[], uid: number): Promise<readonly VmDrive[]> {
  return allEnded(
    drives.map(async ({ drive: { label, readOnly }, volume }) => {
      return { name: label, source: { ...(await volume.attach(uid)), readOnly } };
    }),
  );
}

/** The drives as the guest is told of them. */
export function guestDrive({ label, mountPath, subPath, readOnly }: AttachedDrive): GuestDrive {
  return { label, mountPath, readOnly, ...(subPath === undefined ? {} : { subPath }) };
}
