import type { DriveStart } from '../../sandboxes/drives/contract.ts';

/** A drive as a client asks for it. */
export interface NewDrive {
  readonly driveId: string;
  /** as `parseReference` takes it */
  readonly image: string;
  readonly mountPath: string;
  readonly subPath?: string;
  readonly readOnly: boolean;
  /** absent: 10 GiB, sparse; an image that is block layers already has a size of its own */
  readonly sizeMb?: number;
}

/** Disks for attached drives, made of images. */
export interface DriveImages {
  /**
   * Brings the images here, those that are not yet, one after the other, and does something with them. Their layers stay
   * until that is done; after it, those stay that a disk stands on.
   * @throws AenvError as pulling does, with the drive's name in the message; `capacity_exhausted`; what `work` throws
   */
  use<T>(drives: readonly NewDrive[], work: (starts: readonly DriveStart[]) => Promise<T>): Promise<T>;
}
