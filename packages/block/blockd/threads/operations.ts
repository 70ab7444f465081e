import type { Durability } from '../../layers/contract.ts';
import type { ExportCounters } from '../../nbd/export.ts';
import type { DiskLayer } from '../records/schema.ts';

/** What the daemon's main thread asks of a thread that serves disks; plain data both ways. */
export interface ThreadOperations {
  /** Makes the files of an empty upper; they are on stable storage when it answers. */
  createLayer(args: { layer: string; sizeBytes: number }): object;
  open(args: OpenDisk): OpenedDisk;
  /** Ends serving and lets go of all files. No error when it is not open. */
  close(args: { disk: string }): object;
  attach(args: { disk: string; socket: string }): object;
  detach(args: { disk: string }): object;
  /** Opens an empty upper for the next swap. */
  prepare(args: { disk: string; layer: string }): object;
  /** Exchanges the upper for the prepared one. */
  swap(args: { disk: string }): { frozen: string; ms: number };
  /**
   * Waits until a layer that a swap of this disk has frozen is sealed, with all that it stands on. What could not be sealed
   * before is tried again.
   */
  sealed(args: { disk: string; layer: string }): object;
  flush(args: { disk: string; durability: Durability }): object;
  /** Merges own layers that lie above one another, bottom first, to one. */
  merge(args: MergeLayers): { sizeBytes: number };
  /** Reads the disk through other layers with the same contents from now on. */
  restack(args: { disk: string; layers: readonly DiskLayer[] }): object;
  usage(args: { disk: string }): { total: number; live: number; connections: number };
  counters(args: object): ThreadCounters;
  /** The thread is about to end; its disks are closed. */
  end(args: object): object;
}

export interface OpenDisk {
  readonly disk: string;
  readonly sizeBytes: number;
  readonly durability: Durability;
  readonly layers: readonly DiskLayer[];
  readonly uppers: readonly string[];
}

/** The record as it is after opening: a swap that was under way when the daemon died is completed. */
export interface OpenedDisk {
  readonly layers: readonly DiskLayer[];
  readonly uppers: readonly string[];
}

export interface MergeLayers {
  readonly layers: readonly string[];
  /** the new one */
  readonly into: string;
  readonly sizeBytes: number;
  /** nothing is below them */
  readonly isBottom: boolean;
}

export interface ThreadCounters extends ExportCounters {
  readonly connections: number;
}

export type ThreadOperation = keyof ThreadOperations;

/** Where a thread finds its files. */
export interface ThreadData {
  readonly root: string;
  readonly runtime: string;
  /** of the thread, from 0 */
  readonly number: number;
  readonly sources?: { readonly module: string; readonly config: string };
}

/** From the main thread. */
export interface ThreadCall {
  readonly id: number;
  readonly operation: ThreadOperation;
  readonly args: unknown;
}

/** To the main thread. */
export type ThreadMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'result'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly code: string; readonly message: string }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: Readonly<Record<string, unknown>>;
    };
