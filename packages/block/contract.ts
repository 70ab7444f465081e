import type { DriveSource } from '@aenv/contracts/vm/drive.ts';
import type { Durability } from './layers/contract.ts';

/** A layer that is read on demand, from where `source` says to whoever knows such layers. */
export interface RemoteLayer {
  /** equal for equal layers: a digest */
  readonly key: string;
  readonly source: Readonly<Record<string, string | number | boolean>>;
}

/**
 * What a disk has when it is made, bottom first: paths of files with layers, wrapped or not, and remote layers. Whoever
 * made the files keeps them as long as a disk or a snapshot stands on them.
 */
export type DiskOrigin =
  | { readonly kind: 'layers'; readonly layers: readonly (string | RemoteLayer)[] }
  | { readonly kind: 'snapshot'; readonly snapshot: string };

export interface NewDisk {
  readonly origin: DiskOrigin;
  /** bytes, a multiple of 512; beyond the layers it reads as zeros */
  readonly sizeBytes: number;
  /** default `relaxed`: survives the death of the VM and of every daemon, not a power cut */
  readonly durability?: Durability;
}

/** A snapshot that was taken and is on its way to the disk of the host. */
export interface DiskSnapshot {
  readonly snapshot: string;
  /** how long the disk stood still, in `ms` */
  readonly swapMs: number;
  /** Resolves when all of it is on stable storage. Until then it is not there after a crash. */
  readonly durable: Promise<void>;
}

/** A writable copy-on-write disk of one sandbox. */
export interface BlockDevice {
  readonly id: string;
  readonly sizeBytes: number;
  /** Makes the volume openable by a VM that runs as `uid`; one VM at a time. */
  attach(uid: number): Promise<DriveSource>;
  /**
   * Makes what the next snapshot needs, and brings what was written so far to stable storage, while the VM goes on: it
   * stands still for the exchange only, on a host that is not busy writing. Waits for two syncs at most, however much the VM
   * writes meanwhile, and keeps it from writing no more than a flush does.
   * @throws AenvError `no_space`, `io_failed`: a snapshot would not become durable; `block_daemon_failed`
   */
  prepareSnapshot(): Promise<void>;
  /**
   * Keeps what was written up to now as a snapshot, which disks can be made from. The VM is paused; it may go on when this
   * resolves.
   * @param snapshot its name, new, `[A-Za-z0-9][A-Za-z0-9_.:-]*`
   */
  snapshot(snapshot: string): Promise<DiskSnapshot>;
  /** Bytes that this volume alone occupies on the host. */
  allocatedBytes(): Promise<number>;
  /** Removes the volume. Idempotent. The VM must have ended. */
  remove(): Promise<void>;
}

export interface BlockStore {
  /**
   * @param id name of the volume, `[a-z0-9-]+`
   * @throws AenvError `no_space`, `layer_corrupt`, `block_daemon_failed`
   */
  create(id: string, disk: NewDisk): Promise<BlockDevice>;
  /**
   * A volume that was made by an earlier process and is served still.
   * @throws AenvError when there is none
   */
  open(id: string): Promise<BlockDevice>;
  /** Ids of all volumes on disk, also those that no sandbox owns any more. */
  list(): Promise<string[]>;
  remove(id: string): Promise<void>;
  /** Layers of a snapshot, bottom first; waits until all of them are sealed and on the disk. */
  layersOf(snapshot: string): Promise<readonly (string | RemoteLayer)[]>;
  /** Files of those layers of a snapshot that disks of this store have written: sealed, so they never change. */
  ownLayersOf(snapshot: string): Promise<readonly string[]>;
  /** Names of the snapshots that are on stable storage. */
  listSnapshots(): Promise<string[]>;
  /** Removes a snapshot; disks that were made from it go on. Idempotent. */
  removeSnapshot(snapshot: string): Promise<void>;
}
