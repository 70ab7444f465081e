import type { AttachedDrive } from '../sandboxes/drives/contract.ts';
import type { StartState } from '../templates/contract.ts';

/** A snapshot as the ledger keeps it. It is there when all that it needs is on the disk, and from then on. */
export interface SnapshotRecord {
  /** 20 of `[a-z0-9]`; what sandboxes that start from it have as their template */
  readonly templateId: string;
  /** of the captured machine in the repository */
  readonly checkpointId: string;
  /** absent: it never had one, or another snapshot has it now */
  readonly name?: SnapshotName;
  /** that it was taken of */
  readonly sandboxId: string;
  readonly createdAt: Date;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly envdVersion: string;
  /** of its sandboxes; its variables are those of the sandbox, which may be secret */
  readonly start: StartState;
  /** that its machine has besides its root */
  readonly drives: readonly AttachedDrive[];
  /** what it took on the disk when it was made, without what it shares; rows of before this was counted do not have it */
  readonly bytes?: number;
}

/** What all snapshots are together. */
export interface SnapshotUsage {
  readonly count: number;
  readonly bytes: number;
}

/** A name within the namespace of the node, as `alias:tag`. */
export interface SnapshotName {
  readonly alias: string;
  readonly tag: string;
}

/** Which snapshots are asked for; all of it must hold. */
export interface SnapshotQuery {
  readonly sandboxId?: string;
  /** an id, or the first part of a name */
  readonly name?: string;
  readonly tag?: string;
  readonly limit: number;
  /** opaque, from the page before */
  readonly nextToken?: string;
}

export interface SnapshotPage {
  /** newest first */
  readonly items: readonly SnapshotRecord[];
  /** absent on the last page, also when it is exactly full */
  readonly nextToken?: string;
}
