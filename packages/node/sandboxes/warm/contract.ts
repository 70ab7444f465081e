import type { BlockDevice } from '@aenv/block/contract.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { MicroVm } from '@aenv/vmm/contract/micro-vm.ts';
import type { BootParts } from '../checkpoints/contract.ts';
import type { MachineDrive } from '../drives/contract.ts';
import type { GuestLine } from '../envd-client/request.ts';

/** What a sandbox is asked for by; one that is kept ready fits when all of it is equal. */
export interface WarmKey {
  /** id of the captured machine that it goes on from */
  readonly checkpoint: string;
  /** whether nothing of a user ran when it was captured */
  readonly quiet: boolean;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
}

/** A captured machine in a VM of its own, with slot and disk, that stands still until it becomes a sandbox. */
export interface Standing {
  readonly vm: MicroVm;
  readonly slot: NetworkSlot;
  readonly volume: BlockDevice;
  readonly drives: readonly MachineDrive[];
  readonly boot: BootParts;
  /** what its envd asks of the host */
  readonly secret: string;
  /** on which its envd has answered; closed with what it holds */
  readonly line: GuestLine;
  /** gives back all that it holds */
  readonly resources: Rollback;
}

/** Machines that are kept ready for sandboxes. */
export interface WarmSandboxes {
  /** `ms` that one may take to answer when it goes on; one that takes longer is given up for another start */
  readonly answerMs: number;
  /** One that fits, which is the caller's from now on; undefined when there is none at the moment. */
  take(key: WarmKey): Standing | undefined;
  /** Gives back all of one that was taken and did not become a sandbox. Never throws. */
  discard(standing: Standing, why: unknown): Promise<void>;
}
