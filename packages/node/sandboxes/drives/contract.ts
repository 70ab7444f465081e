import type { BlockDevice, DiskOrigin } from '@aenv/block/contract.ts';

/** A drive that is attached to a sandbox besides its root, as ledger and manifests keep it. */
export interface AttachedDrive {
  /** what its client calls it, unique in the sandbox */
  readonly driveId: string;
  /** how the guest finds it: label of its file system, and its name on the machine */
  readonly label: string;
  /** absolute */
  readonly mountPath: string;
  /** folder of the drive that is shown there; absent: all of it */
  readonly subPath?: string | undefined;
  readonly readOnly: boolean;
  readonly sizeMb: number;
}

/** A drive of a sandbox that is about to start, and what its disk is made of. */
export interface DriveStart {
  readonly drive: AttachedDrive;
  readonly disk: DiskOrigin;
}

/** A drive of a sandbox that runs. */
export interface MachineDrive {
  readonly drive: AttachedDrive;
  readonly volume: BlockDevice;
}
