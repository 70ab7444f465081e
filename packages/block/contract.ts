import type { DriveSource } from '@aenv/contracts/vm/drive.ts';

/** A sealed layer in a file; immutable, never changed or deleted while a volume or a snapshot uses it. */
export interface DiskLayer {
  readonly path: string;
}

/** Where the bytes of a new volume come from: layers, the bottom one first, or a snapshot of another volume. */
export type DiskOrigin =
  | { readonly kind: 'layers'; readonly layers: readonly DiskLayer[] }
  | { readonly kind: 'snapshot'; readonly snapshot: string };

/** A writable copy-on-write disk of one sandbox. */
export interface BlockDevice {
  readonly id: string;
  readonly sizeBytes: number;
  /** Makes the volume openable by a VM that runs as `uid`; one VM at a time. */
  attach(uid: number): Promise<DriveSource>;
  /** Makes what the next snapshot needs, so that the VM need not stand still for it. */
  prepareSnapshot(): Promise<void>;
  /**
   * Takes a snapshot: what was written up to now. The VM stands still, and may go on when it resolves; the snapshot lasts
   * only after `settleSnapshot`.
   */
  snapshot(id: string): Promise<void>;
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
  create(id: string, origin: DiskOrigin, sizeBytes: number): Promise<BlockDevice>;
  /** Ids of all volumes on disk, also those that no sandbox owns any more. */
  list(): Promise<string[]>;
  remove(id: string): Promise<void>;
  /** Waits until a snapshot is on stable storage. */
  settleSnapshot(id: string): Promise<{ readonly layers: readonly DiskLayer[] }>;
  /** Idempotent. Layers that volumes or other snapshots use stay. */
  removeSnapshot(id: string): Promise<void>;
  listSnapshots(): Promise<string[]>;
}
