import type { MemorySink, VmDriver, VmImage, VmmBuild } from '@aenv/vmm/contract/micro-vm.ts';

/**
 * Durable checkpoints of whole machines: device state, memory, and what the block room says of the disks. A snapshot is
 * there as a whole or not at all, whenever the daemon ends. Artefacts that snapshots share (memory bases and their
 * chunks) are kept as long as a snapshot, an open use of one or a running VM needs them.
 */
export interface SnapshotRepository {
  /**
   * Begins a snapshot of a VM. Nothing is visible until it is committed; disposing a draft that was not committed
   * removes every trace.
   * @throws AenvError `snapshot_exists`; `capture_failed` for a memory base that is neither of this repository nor a file
   *   of zeros; `no_space`
   */
  begin(of: SnapshotSubject): Promise<SnapshotDraft>;
  /** @throws AenvError `snapshot_not_found`, `snapshot_corrupt`, `snapshot_unsupported` (of a newer version) */
  get(id: string): Promise<SnapshotManifest>;
  /** Those that can be read, the oldest first; the others are in `damaged`. */
  list(): Promise<readonly SnapshotManifest[]>;
  /** Snapshots whose manifest cannot be read, with the reason. They stay until they are removed. */
  damaged(): Promise<readonly DamagedSnapshot[]>;
  /**
   * Makes a snapshot ready for `VmDriver.restore`: checked, its memory base a file of this host. What the delta says is
   * checked while it is given, so before the guest executes anything. Its files stay until the result is closed, which
   * is for when the VM's record, with its memory base, is in the ledger.
   * @throws AenvError `snapshot_not_found`, `snapshot_corrupt` naming the artefact, `snapshot_unsupported`,
   *   `snapshot_incompatible` with what this host lacks, `no_space`
   */
  open(id: string, host: HostFacts): Promise<OpenSnapshot>;
  /**
   * Takes a snapshot over from the folder of another repository that nobody writes to any more; files that never change
   * are shared with it. Idempotent.
   * @throws AenvError `snapshot_not_found`, `snapshot_corrupt`, `no_space`, `io_failed`
   */
  adopt(root: string, id: string): Promise<SnapshotManifest>;
  /**
   * Makes the delta of a snapshot part of a base of its own, for one that is started often, or whose VM writes much: what
   * is captured from then on is small again. Takes some 10 ms of a processor for each 4 MiB of memory that the delta is
   * in, so it is for the time after a pause was answered. Whoever has it open is not disturbed. Does nothing without a
   * delta, and for a snapshot that is removed meanwhile.
   * @param pace is waited for before each part of 4 MiB
   * @throws AenvError `snapshot_not_found`, `snapshot_corrupt`, `no_space`, `io_failed`; the snapshot can be started as before
   */
  mergeDelta(id: string, pace?: () => Promise<void>): Promise<void>;
  /**
   * Removes a snapshot: it is gone for everybody at once, its files when nobody has it open. What others need stays; what
   * nobody needs any more goes with the next `gc`. Idempotent.
   */
  remove(id: string): Promise<void>;
  /**
   * Reads every byte of all artefacts of a snapshot and compares it with what was written.
   * @throws AenvError `snapshot_not_found`
   */
  verify(id: string): Promise<SnapshotVerification>;
  /** Removes shared artefacts that nothing needs. Commits wait meanwhile. */
  gc(roots: GcRoots): Promise<GcReport>;
  /** Waits for what is under way. Open snapshots and drafts are their owners' business. */
  close(): Promise<void>;
}

export interface SnapshotSubject {
  /** of the new snapshot: `[a-z0-9-]`, at most 64 characters, never used before */
  readonly id: string;
  /** `VmRecord.memoryBase` of the VM: a base of this repository, or the file of zeros of a cold boot */
  readonly memoryBase: string;
  /** guest memory in MiB */
  readonly memoryMb: number;
}

/** A snapshot in the making: the target of `MicroVm.capture`. */
export interface SnapshotDraft extends AsyncDisposable {
  /** path of the file that the VMM makes */
  readonly deviceState: string;
  /** streams to the disk while the VM stands still */
  readonly memory: MemorySink;
  /**
   * Told how much is about to come, makes ready for it while the VM still runs. Before anything is given to `memory`; it may
   * be more or less then.
   * @throws AenvError `no_space`, `io_failed`
   */
  expect(bytes: number): Promise<void>;
  /**
   * Makes the snapshot visible; resolves when all of it is on the disk. The source may run on meanwhile.
   * @throws AenvError `no_space`, `io_failed`, `snapshot_exists`; then nothing is visible
   */
  commit(facts: SnapshotFacts, options?: CommitOptions): Promise<SnapshotManifest>;
}

export interface CommitOptions {
  /**
   * Whether the pages become a base of their own, which all VMs that start from it share (templates), or stay a delta to
   * the base of the VM. Absent: a base when the delta is more than a quarter of the memory, or when those who continue it
   * would have more than half a memory of it twice.
   */
  readonly asNewBase?: boolean;
  /** how many continue it at the same time; default 1 */
  readonly continued?: number;
  /** false: do not wait for the disk, for a snapshot that need not outlive the host (forks); default true */
  readonly durable?: boolean;
}

export type SnapshotKind = 'template' | 'pause' | 'snapshot' | 'fork';

/** What of a snapshot its maker knows. */
export interface SnapshotFacts {
  readonly kind: SnapshotKind;
  readonly source: { readonly sandboxId?: string; readonly templateId?: string };
  /** names that it was made with; which names it has now is the name registry's business */
  readonly names: readonly string[];
  readonly disk: SnapshotDisk;
  readonly vmm: { readonly kind: VmDriver['kind']; readonly build: VmmBuild };
  readonly machine: {
    readonly cpuCount: number;
    /** names of the drives, in their order */
    readonly drives: readonly string[];
  };
  readonly cpu: CpuFacts;
  /** what the guest was booted from; an old one stays as long as a snapshot needs it */
  readonly kernel: BootArtefact;
  readonly toolsDrive: BootArtefact;
  readonly envd: {
    /** what envd of the captured guest asks of the host */
    readonly hostSecret: string;
    readonly version: string;
    /** boot id of the guest's kernel */
    readonly bootId: string;
  };
}

export interface SnapshotDisk {
  /** what the block room needs to make the disks again: layers, sizes, digests */
  readonly state: JsonObject;
  /** files and folders that must stay as long as the snapshot does */
  readonly paths: readonly string[];
}

export interface BootArtefact {
  readonly digest: string;
  readonly path: string;
}

/** Of the host's processor, as far as a guest sees it. */
export interface CpuFacts {
  readonly model: string;
  readonly flags: readonly string[];
  /** absent where it has no TSC */
  readonly tscKhz?: number;
}

/** What a host runs snapshots with. */
export interface HostFacts {
  readonly kind: VmDriver['kind'];
  readonly build: VmmBuild;
  readonly cpu: CpuFacts;
}

/** A snapshot as it is kept. It has a secret: mode 0600, never in logs or answers. */
export interface SnapshotManifest extends SnapshotFacts {
  readonly id: string;
  readonly createdAt: Date;
  readonly memory: {
    readonly memoryMb: number;
    /** `sha256:…` of the memory base's own manifest */
    readonly base: string;
    readonly delta?: MemoryDelta;
  };
  readonly deviceState: Artefact;
}

/** A file of a snapshot of its own. */
export interface Artefact {
  /** name in the folder of the snapshot */
  readonly file: string;
  readonly sizeBytes: number;
  /** `sha256:…` */
  readonly digest: string;
}

export interface MemoryDelta extends Artefact {
  /** CRC-32 of the whole file: what is checked on each restore */
  readonly crc32: number;
  /** bytes of guest memory that it replaces */
  readonly dataBytes: number;
  /** bytes of guest memory that it says are zero */
  readonly zeroBytes: number;
}

export interface OpenSnapshot {
  readonly manifest: SnapshotManifest;
  readonly image: VmImage;
  /** Lets go of its files. Idempotent. */
  close(): Promise<void>;
}

export interface DamagedSnapshot {
  readonly id: string;
  readonly error: Error;
}

export interface SnapshotVerification {
  /** bytes that were read */
  readonly checkedBytes: number;
  /** empty: all is well */
  readonly problems: readonly ArtefactProblem[];
}

export interface ArtefactProblem {
  /** for people: which artefact, and where in it */
  readonly artefact: string;
  readonly path: string;
  readonly message: string;
}

export interface GcRoots {
  /** `VmRecord.memoryBase` of all VMs that run, as it is at the moment of the call */
  readonly memoryBases: () => Iterable<string>;
  /**
   * Also removes local files of memory bases that no VM maps and nobody has open: they are made again from the chunks,
   * at the price of the next start.
   */
  readonly dropUnusedFiles?: boolean;
}

export interface GcReport {
  readonly bases: number;
  readonly chunks: number;
  /** local files of memory bases */
  readonly files: number;
  readonly freedBytes: number;
  /** ids of snapshots that cannot be read, so that nobody knows what they need: then no shared artefact is removed */
  readonly blockedBy: readonly string[];
}

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}
