import type { DriveSource } from '@aenv/contracts/vm/drive.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { ProcessIdentity } from '@aenv/platform/process/identity.ts';

/**
 * What the product asks of a VMM. Written for two: QEMU (drives are files or NBD sockets, control over QMP) and
 * Firecracker (drives are files or block devices, control over HTTP on a unix socket). Both keep guest memory as a
 * private mapping of an immutable file, so that a snapshot is a device-state file plus a memory file.
 */
export interface VmDriver {
  readonly kind: 'qemu' | 'firecracker' | 'fake';
  /** what a snapshot must match to be restored here: VMM version, accelerator, machine type */
  readonly build: VmmBuild;
  /** Kinds of DriveSource that this VMM opens. */
  readonly driveKinds: readonly DriveSource['kind'][];
  /** The most drives that a VM may have, root and tools included. */
  readonly maxDrives: number;
  /**
   * Starts one VM process and returns when it executes guest code; whether the guest comes up is the caller's question
   * (see `bootWithRetry`). Nothing is left behind when it throws.
   * @throws AenvError `boot_failed` with the VMM's last stderr lines, `qemu_missing`
   */
  start(spec: VmSpec, signal?: AbortSignal): Promise<MicroVm>;
  /**
   * Starts a VM process with a captured machine in it and returns when its memory and devices are in place; its virtual
   * CPUs stand still (`paused`) until `resume`. Shape and drives must be those of the capture; their sources may differ.
   * Nothing is left behind when it throws.
   * @throws AenvError `restore_failed` with the VMM's last stderr lines, `qemu_missing`, what reading `image.delta` throws
   */
  restore(spec: VmShape, image: VmImage, signal?: AbortSignal): Promise<MicroVm>;
  /**
   * Takes over a VM that an earlier daemon started. Undefined when it is gone, or its guest has ended meanwhile; then
   * its run folder is gone, too.
   * @throws AenvError `vm_died` when the process runs but cannot be managed; it is left as it is
   */
  adopt(record: VmRecord): Promise<MicroVm | undefined>;
  /** Lets go of all VMs, which run on. Their MicroVm objects are of no use any more: `exited` may never resolve. */
  close(): Promise<void>;
}

export interface VmmBuild {
  readonly version: string;
  readonly accelerator: 'kvm' | 'tcg' | 'none';
  readonly machine: string;
}

/** All of a VM but what it boots. */
export interface VmShape {
  /** unique for each start, never used again; names the process and the run folder */
  readonly incarnation: string;
  /** folder of this VM alone, made by the driver (0700, owned by the slot's uid) and removed on stop */
  readonly runDir: string;
  /** bounded serial console log (0600), written by the driver; outlives the VM, so it is not in `runDir` */
  readonly serialLog: string;
  readonly cpuCount: number;
  /** guest memory in MiB */
  readonly memoryMb: number;
  /** the first one is /dev/vda; the guest itself finds drives by label or UUID */
  readonly drives: readonly VmDrive[];
  readonly network: NetworkSlot;
}

export interface VmSpec extends VmShape {
  readonly kernel: string;
  readonly initramfs: string;
  readonly kernelArgs: string;
}

export interface VmDrive {
  readonly name: string;
  readonly source: DriveSource;
}

/** What the ledger keeps to find a VM again after the daemon was restarted. Plain data. */
export interface VmRecord {
  readonly kind: VmDriver['kind'];
  readonly incarnation: string;
  readonly process: ProcessIdentity;
  readonly runDir: string;
  readonly serialLog: string;
  /** the file that the guest's memory is a private mapping of */
  readonly memoryBase: string;
  /** that it runs under; absent in records of before this was kept */
  readonly build?: VmmBuild;
}

/** Pages are 4 KiB; offsets in guest memory are those in its base file. */
export const PAGE_SIZE = 4096;

/** Takes the pages that differ from the base, in ascending order, as runs of whole pages. */
export interface MemorySink {
  /** `bytes` are only valid during the call, or until its promise resolves. */
  data(offset: number, bytes: Uint8Array): void | Promise<void>;
  zero(offset: number, length: number): void | Promise<void>;
}

/** Where a capture goes. */
export interface CaptureTarget {
  /** path of the file to be made with the state of processors and devices, 0600; not yet synced */
  readonly deviceState: string;
  readonly memory: MemorySink;
}

/** A captured machine, to be started any number of times. */
export interface VmImage {
  readonly deviceState: string;
  /** immutable, as large as the guest's memory, readable by the slots' users; never changed or reused while mapped */
  readonly memoryBase: string;
  /** gives the pages that differ from the base to the sink, as `capture` gave them */
  readonly delta?: (sink: MemorySink) => Promise<void>;
}

/**
 *          pause            stop, or the process ends
 * running -------> paused  ---------------------------> exited
 *         <-------
 *          resume
 */
export type VmState = 'running' | 'paused' | 'exited';

export interface VmExit {
  /** `stopped`: by stop(); `died`: anything else */
  readonly reason: 'stopped' | 'died';
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** last lines of the VMM's stderr and of the serial console, for the error message */
  readonly lastLines: string;
}

export interface MicroVm {
  readonly record: VmRecord;
  readonly state: VmState;
  /** Resolves once, when the VM process is gone and its run folder is removed, whatever the reason. */
  readonly exited: Promise<VmExit>;
  /** Stops the virtual CPUs and flushes the drives. No-op when paused; throws `vm_died` when exited. */
  pause(): Promise<void>;
  /** No-op when running; throws `vm_died` when exited. */
  resume(): Promise<void>;
  /** How much memory a capture would write at most, in bytes: what of the guest's memory is not that of its base any more. */
  privateBytes(): Promise<number>;
  /**
   * How much memory a capture would give to its sink now, in bytes of whole pages: counted one by one, which takes some ms
   * for each 512 MiB of memory. The VM may run.
   * @throws AenvError `vm_died`, `capture_failed`
   */
  changedBytes(): Promise<number>;
  /**
   * Writes the whole machine down, as it stands at this instant: the state of processors and devices to a file, and all
   * pages that differ from `record.memoryBase` to a sink. The VM must be paused, and stays so. Drives are the caller's.
   * @throws AenvError `vm_died`, `no_space`, `capture_failed`, also for a VM that is not paused
   */
  capture(target: CaptureTarget): Promise<void>;
  /** Ends the VM and waits until its process and its run folder are gone. Idempotent. */
  stop(): Promise<void>;
}
