import type { BlockDevice, DiskOrigin } from '@aenv/block/contract.ts';
import type { MicroVm, VmImage } from '@aenv/vmm/contract/micro-vm.ts';
import type { BootArtefact } from '../../snapshots/contract.ts';
import type { LayerSum } from '../../snapshots/disks/disk-state.ts';
import type { CheckpointRef } from '../../store/sandbox-record.ts';
import type { AttachedDrive, DriveStart, MachineDrive } from '../drives/contract.ts';
import type { Phases } from '../launch/phases.ts';

/** What a guest was booted from: its kernel is in its memory, its tools drive must stay the same, byte for byte. */
export interface BootParts {
  readonly kernel: BootArtefact;
  readonly toolsDrive: BootArtefact;
}

/** What a sandbox holds of the host while it runs. */
export interface Machine {
  readonly vm: MicroVm;
  readonly volume: BlockDevice;
  readonly drives: readonly MachineDrive[];
  /** that the host dials */
  readonly address: string;
  readonly boot: BootParts;
}

export type CheckpointKind = 'template' | 'pause' | 'snapshot' | 'fork';

export interface CaptureRequest {
  /** id that the checkpoint gets, never used before */
  readonly id: string;
  readonly kind: CheckpointKind;
  readonly machine: Machine;
  readonly sandboxId: string;
  readonly templateId: string;
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
  readonly envd: { readonly hostSecret: string; readonly version: string; readonly bootId?: string };
  /** whether the VM stands still afterwards, or runs on as soon as its state is read */
  readonly then: 'stay_paused' | 'go_on';
  /** false: the disk alone, as it is when the guest has written all that it had in memory for it; default true */
  readonly memory?: boolean;
  /** names that it is made with, for its manifest */
  readonly names?: readonly string[];
  /** how many will continue it: what each would have for itself they share as a file, where it is much; default 1 */
  readonly continued?: number;
}

/** A checkpoint that is about to be continued: its files stay until `close`. */
export interface OpenCheckpoint {
  readonly image: VmImage;
  readonly disk: DiskOrigin;
  /** in the order in which the machine had them */
  readonly drives: readonly DriveStart[];
  readonly boot: BootParts;
  readonly hostSecret: string;
  readonly cpuCount: number;
  readonly memoryMb: number;
  close(): Promise<void>;
}

export interface Captured {
  /** what it takes on the disk, without what it shares with others */
  readonly bytes: number;
  /**
   * How long it took, `still` being the time for which the programs of the guest stood still: `freeze`, `stop`, `memory`,
   * `disk` and, where it goes on, `release`. `prepare` comes before it, `durable` after it.
   */
  readonly ms: Phases;
  /** what is in the files of its disks, where it has no manifest that says so */
  readonly files?: readonly LayerSum[];
}

/** The disks of a sandbox as they were kept. */
export interface KeptDisks {
  readonly disk: DiskOrigin;
  readonly drives: readonly DriveStart[];
}

/** Captured sandboxes: memory, devices and disk of one instant, or the disk alone. */
export interface Checkpoints {
  /**
   * Makes sure that a machine can be captured and continued here, and promises the room for it until the result is
   * disposed. Nothing happens to the machine.
   * @throws AenvError `no_space`; `snapshot_incompatible` for one that runs under another VMM than this node has now
   */
  admit(request: CaptureRequest): Promise<Disposable>;
  /**
   * Captures a running machine. When it resolves, all of it is durable, and a machine that was to stand still is not needed
   * any more, nor is it asked whether it lives. When it throws, nothing of the checkpoint is left; the VM is then in either
   * state.
   * @param admitted that `admit` was called, and its promise holds; it is called first otherwise
   * @throws AenvError as `admit`; `vm_died`, `capture_failed`, `no_space`, `io_failed`
   */
  capture(request: CaptureRequest, admitted?: boolean): Promise<Captured>;
  /**
   * Lets a machine that stands still go on. Its clock stood still, too, and is set.
   * @throws AenvError `vm_died`
   */
  goOn(machine: Machine, hostSecret: string): Promise<void>;
  /** @throws AenvError `snapshot_not_found`, `snapshot_corrupt`, or why this host cannot run it */
  open(id: string): Promise<OpenCheckpoint>;
  /**
   * The disks of a checkpoint, to be booted; also of one that has the memory.
   * @throws AenvError `snapshot_corrupt` naming the part; as `open`
   */
  disksOf(checkpoint: CheckpointRef, drives: readonly AttachedDrive[]): Promise<KeptDisks>;
  /** Idempotent. What others still need of it stays. */
  remove(id: string): Promise<void>;
}
