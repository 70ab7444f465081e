import type { VmRecord } from '@aenv/vmm/contract/micro-vm.ts';
import type { BootParts } from '../sandboxes/checkpoints/contract.ts';
import type { EndReason, SandboxState, SandboxView } from '../sandboxes/contract.ts';
import type { AttachedDrive } from '../sandboxes/drives/contract.ts';
import type { LayerSum } from '../snapshots/disks/disk-state.ts';
import type { StartState } from '../templates/contract.ts';

/**
 * A sandbox as the ledger keeps it: all that the API shows, and what is needed to find its parts again after the daemon
 * was restarted. Secrets (`hostSecret`, tokens, variables) are wiped when it becomes `ended` or `lost`.
 */
export interface SandboxRecord extends SandboxView {
  /** when the row was made; `startedAt` is when envd answered, and equal to this before */
  readonly createdAt: Date;
  readonly endedAt?: Date;
  readonly endReason?: EndReason;
  /** one line for people on what ended it */
  readonly endMessage?: string;
  readonly envVars: Readonly<Record<string, string>>;
  /** what its guest is told and begins with when it boots, as its template said when it was made */
  readonly start: StartState;
  readonly secure: boolean;
  /** time to live that it was made with; absent in rows of before this was kept */
  readonly timeoutSeconds?: number;
  /** what envd asks of the host; empty once ended */
  readonly hostSecret: string;
  readonly slotIndex?: number;
  /** absolute path of the network namespace */
  readonly netns?: string;
  readonly vm?: VmRecord;
  /** what its guest was booted from; absent also in rows of before this was kept */
  readonly boot?: BootParts;
  readonly volumeId?: string;
  /** attached drives, in their order; their volumes are named after the sandbox */
  readonly drives: readonly AttachedDrive[];
  readonly incarnation?: string;
  /** boot id of the guest's kernel */
  readonly bootId?: string;
  /** whether the pause at the end of its time keeps the memory */
  readonly pauseMemory: boolean;
  /** what a pause kept, or is about to keep; while it runs again, until the next pause, there is none */
  readonly checkpoint?: CheckpointRef;
  readonly pausedAt?: Date;
}

/** A captured sandbox: id of its snapshot, and whether its memory is in it. */
export interface CheckpointRef {
  readonly id: string;
  readonly memory: boolean;
  /** what of the disk it takes, or is expected to take; rows of before this was counted do not have it */
  readonly bytes?: number;
  /** set when a shutdown paused it, so that the next start lets it go on: what was left of its time to live, in `ms` */
  readonly leftMs?: number;
  /** what is in the files of its disks; of one that has the memory, the manifest says so */
  readonly files?: readonly LayerSum[];
}

/** States in which a sandbox holds, or may hold, resources of the host. */
export const LIVE_STATES: readonly SandboxState[] = ['creating', 'running', 'pausing', 'paused', 'resuming', 'killing'];

/**
 * What may change after the row was made. An absent member leaves its field as it is, null clears it.
 */
export interface SandboxChange {
  readonly state?: SandboxState;
  readonly startedAt?: Date;
  readonly endAt?: Date;
  readonly endedAt?: Date;
  readonly endReason?: EndReason;
  readonly endMessage?: string;
  readonly onTimeout?: 'kill' | 'pause';
  readonly envdVersion?: string;
  readonly hostSecret?: string;
  readonly envdAccessToken?: string | null;
  readonly trafficAccessToken?: string | null;
  readonly slotIndex?: number | null;
  readonly netns?: string | null;
  readonly vm?: VmRecord | null;
  readonly boot?: BootParts | null;
  readonly volumeId?: string | null;
  readonly drives?: readonly AttachedDrive[];
  readonly incarnation?: string | null;
  readonly bootId?: string | null;
  readonly checkpoint?: CheckpointRef | null;
  readonly pausedAt?: Date | null;
}

/** The part of a record that the API may see: no host secret, no places on this host. */
export function toView(record: SandboxRecord): SandboxView {
  return {
    sandboxId: record.sandboxId,
    templateId: record.templateId,
    ...(record.alias === undefined ? {} : { alias: record.alias }),
    state: record.state,
    startedAt: record.startedAt,
    endAt: record.endAt,
    cpuCount: record.cpuCount,
    memoryMb: record.memoryMb,
    diskSizeMb: record.diskSizeMb,
    metadata: record.metadata,
    envdVersion: record.envdVersion,
    ...(record.envdAccessToken === undefined ? {} : { envdAccessToken: record.envdAccessToken }),
    ...(record.trafficAccessToken === undefined ? {} : { trafficAccessToken: record.trafficAccessToken }),
    allowInternetAccess: record.allowInternetAccess,
    network: record.network,
    onTimeout: record.onTimeout,
    autoResume: record.autoResume,
  };
}
