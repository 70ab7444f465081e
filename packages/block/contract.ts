import type { DriveSource } from '@aenv/contracts/vm/drive.ts';

/** An immutable ext4 file system that volumes stack on. Never changed or deleted while a volume uses it. */
export interface BaseImage {
  readonly path: string;
  readonly sizeBytes: number;
}

/** A writable copy-on-write disk of one sandbox. */
export interface BlockDevice {
  readonly id: string;
  readonly sizeBytes: number;
  /** Makes the volume openable by a VM that runs as `uid`; one VM at a time. */
  attach(uid: number): Promise<DriveSource>;
  /** All that the VM wrote is on stable storage and consistent; the VM is paused. */
  flushBeforeCapture(): Promise<void>;
  /** Bytes that this volume alone occupies on the host. */
  allocatedBytes(): Promise<number>;
  /** Removes the volume. Idempotent. The VM must have ended. */
  remove(): Promise<void>;
}

export interface BlockStore {
  /**
   * @param id name of the volume, `[a-z0-9-]+`
   * @throws AenvError `no_space`, `host_command_failed`
   */
  create(id: string, base: BaseImage): Promise<BlockDevice>;
  /** Ids of all volumes on disk, also those that no sandbox owns any more. */
  list(): Promise<string[]>;
  remove(id: string): Promise<void>;
}
