import type { BlockStore } from '@aenv/block/contract.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { allEnded } from '@aenv/platform/rollback/all-ended.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type {
  Captured,
  CaptureRequest,
  Checkpoints,
  KeptDisks,
  Machine,
  OpenCheckpoint,
} from '../sandboxes/checkpoints/contract.ts';
import type { AttachedDrive } from '../sandboxes/drives/contract.ts';
import { GuestLine } from '../sandboxes/envd-client/request.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../sandboxes/faults.ts';
import { Stopwatch } from '../sandboxes/launch/phases.ts';
import type { CapturedGuests } from '../sandboxes/restoring/captured-guests.ts';
import type { CheckpointRef } from '../store/sandbox-record.ts';
import type { CommitOptions, HostFacts, SnapshotDraft, SnapshotManifest, SnapshotRepository } from './contract.ts';
import type { DiskSpace } from './disk-space.ts';
import {
  checkpointOf,
  diskOf,
  driveSnapshot,
  drivesOf,
  filesOf,
  type LayerSum,
  snapshotState,
} from './disks/disk-state.ts';
import { LayerSums } from './disks/layer-sums.ts';
import { Merges } from './merges.ts';
import type { FileSum } from './repository/hash-file.ts';
import { incompatibility } from './repository/host/incompatibility.ts';
import { StandStills } from './stand-stills.ts';

export interface CheckpointsOptions {
  readonly repository: SnapshotRepository;
  readonly volumes: BlockStore;
  readonly space: DiskSpace;
  readonly guests: Pick<CapturedGuests, 'prepare' | 'freeze' | 'unfreeze' | 'sync'>;
  readonly faults?: LifecycleFaults;
  /** what VMs run on here */
  readonly host: HostFacts;
  /** what must be in a file that VMs boot; undefined where nobody knows */
  readonly sealOf: (path: string) => Promise<FileSum | undefined>;
  readonly log: Logger;
}

const MIB = 2 ** 20;
/** State of devices, manifests, and what the disk of the sandbox writes meanwhile. */
const MARGIN_BYTES = 16 * MIB;
/** Share of the memory above which a delta that was kept is merged into its base afterwards. */
const LARGE_DELTA = 0.25;
/** Share of the memory that a guest may still have to write to its disks: the kernel's default of `vm.dirty_ratio`. */
const DIRTY_SHARE = 0.2;

type Disks = ReturnType<typeof disksOf>;

interface Taking {
  readonly line: GuestLine;
  readonly disks: Disks;
  readonly draft: SnapshotDraft;
  readonly undo: Rollback;
  readonly stopwatch: Stopwatch;
}

/** Checkpoints in the repository of this node, their disks as snapshots of the block room. */
export class NodeCheckpoints implements Checkpoints {
  readonly #options: CheckpointsOptions;
  readonly #sums = new LayerSums();
  readonly #merges: Merges;
  readonly #standStills = new StandStills();

  constructor(options: CheckpointsOptions) {
    this.#options = options;
    this.#merges = new Merges({ ...options, pace: () => this.#standStills.none() });
  }

  async admit(request: CaptureRequest): Promise<Disposable> {
    const { space, host } = this.#options;
    const { kind, machine, memoryMb, memory } = request;
    const privateBytes = Math.min(memoryMb * MIB, await machine.vm.privateBytes());
    if (memory === false) {
      return await space.reserve(Math.ceil(privateBytes * DIRTY_SHARE) + MARGIN_BYTES, `a ${kind} without memory`);
    }
    const why = incompatibility({ vmm: this.#vmmOf(machine), cpu: host.cpu }, host);
    if (why !== undefined) throw cannotGoOn(request, why);
    // A base of its own is a file as large as the memory, beside the pages that it is made of.
    const baseBytes = commitOptions(request).asNewBase === false ? 0 : memoryMb * MIB;
    return await space.reserve(privateBytes + baseBytes + MARGIN_BYTES, `a ${kind}`);
  }

  async capture(request: CaptureRequest, admitted = false): Promise<Captured> {
    using _room = admitted ? undefined : await this.admit(request);
    return await (request.memory === false ? this.#captureDisk(request) : this.#captureAll(request));
  }

  /**
   * Memory and disk are of one instant: both are taken while the virtual processors stand still. What can be done before
   * or after that is done before or after.
   */
  async #captureAll(request: CaptureRequest): Promise<Captured> {
    const { repository } = this.#options;
    const { id, kind, machine, memoryMb, envd } = request;
    const { vm, address } = machine;
    const stopwatch = new Stopwatch();
    const disks = disksOf(id, machine);
    const memoryBytes = Math.min(memoryMb * MIB, await vm.privateBytes());
    await using undo = new Rollback();
    await using draft = await repository.begin({ id, memoryBase: vm.record.memoryBase, memoryMb });
    using line = new GuestLine();
    await prepared(vm, disks, (signal) => [
      vm.changedBytes().then((bytes) => draft.expect(bytes)),
      this.#options.guests.prepare(address, envd.hostSecret, line, signal),
    ]);
    stopwatch.note('prepare', stopwatch.read().total ?? 0);
    const take = () => this.#take(request, { line, disks, draft, undo, stopwatch });
    const taken = await stopwatch.time('still', () => this.#standStills.during(take));
    const { memory, deviceState } = await stopwatch.time('durable', async () => {
      await allEnded(taken.map(({ durable }) => durable));
      // What is kept for longer than this daemon tells what must be in the files that have no checksums.
      const files = kind === 'fork' ? undefined : await this.#sumsOf(disks);
      return await draft.commit(this.#facts(request, files), commitOptions(request));
    });
    undo.keep();
    if (isWorthMerging(kind, memory)) this.#merges.add(id, memoryMb * MIB);
    return { bytes: deviceState.sizeBytes + (memory.delta?.sizeBytes ?? memoryBytes), ms: stopwatch.read() };
  }

  /** The part for which the programs of the guest stand still. */
  async #take({ kind, machine, envd, then }: CaptureRequest, { line, disks, draft, undo, stopwatch }: Taking) {
    const { volumes, guests, faults = noLifecycleFaults } = this.#options;
    const { vm, address } = machine;
    await stopwatch.time('freeze', () => guests.freeze(address, envd.hostSecret, line));
    await stopwatch.time('stop', () => vm.pause());
    for (const { name } of disks) undo.add(() => volumes.removeSnapshot(name));
    await faults.hit(`${kind}.machine_stopped`);
    // The guest leaves its processor to the block daemon, which has the most of its work behind it when the guest goes on.
    const [taken] = await allEnded([
      stopwatch.time('disk', () => allEnded(disks.map(({ name, volume }) => volume.snapshot(name)))),
      stopwatch.time('memory', () => vm.capture(draft)),
    ]);
    await faults.hit(`${kind}.memory_captured`);
    await faults.hit(`${kind}.disk_taken`);
    if (then === 'go_on') await stopwatch.time('unfreeze', () => this.#goOn(machine, envd.hostSecret, line));
    return taken;
  }

  /** What the guest writes between the two steps is on the disk or not, as after a power cut: its file system copes. */
  async #captureDisk({ id, machine, envd, then }: CaptureRequest): Promise<Captured> {
    const { guests, volumes, faults = noLifecycleFaults } = this.#options;
    const stopwatch = new Stopwatch();
    const { vm, address } = machine;
    const disks = disksOf(id, machine);
    await using undo = new Rollback();
    await whileItLives(vm, (signal) => guests.sync(address, envd.hostSecret, signal));
    await faults.hit('pause_disk.synced');
    await prepared(vm, disks);
    await vm.pause();
    for (const { name } of disks) undo.add(() => volumes.removeSnapshot(name));
    await faults.hit('pause_disk.machine_stopped');
    const taken = await allEnded(disks.map(({ name, volume }) => volume.snapshot(name)));
    await faults.hit('pause_disk.disk_taken');
    if (then === 'go_on') await this.goOn(machine, envd.hostSecret);
    await allEnded(taken.map(({ durable }) => durable));
    const files = await this.#sumsOf(disks);
    undo.keep();
    return { bytes: 0, files, ms: stopwatch.read() };
  }

  async disksOf({ id, memory, files }: CheckpointRef, drives: readonly AttachedDrive[]): Promise<KeptDisks> {
    const kept = memory ? filesOf(await this.#options.repository.get(id)) : files;
    await this.#sums.check(kept ?? []);
    const starts = drives.map((drive, at) => {
      return { drive, disk: { kind: 'snapshot', snapshot: driveSnapshot(id, at + 1) } } as const;
    });
    return { disk: { kind: 'snapshot', snapshot: id }, drives: starts };
  }

  async goOn(machine: Machine, hostSecret: string): Promise<void> {
    await this.#goOn(machine, hostSecret);
  }

  /** What the guest is told is there for it when its processors start. */
  async #goOn({ vm, address }: Machine, hostSecret: string, line?: GuestLine): Promise<void> {
    const goesOn = vm.resume();
    const told = whileItLives(vm, () => this.#options.guests.unfreeze(address, hostSecret, line));
    told.catch(() => {});
    await goesOn;
    await told;
  }

  async open(id: string): Promise<OpenCheckpoint> {
    const { repository, host, sealOf } = this.#options;
    const { manifest, image, close } = await repository.open(id, host);
    try {
      await this.#sums.check(filesOf(manifest));
      const { path } = manifest.toolsDrive;
      const sum = await sealOf(path);
      if (sum !== undefined) await this.#sums.check([{ path, ...sum }], `the tools drive of snapshot ${id},`);
      return {
        image,
        disk: diskOf(manifest),
        drives: drivesOf(manifest),
        boot: { kernel: manifest.kernel, toolsDrive: manifest.toolsDrive },
        hostSecret: manifest.envd.hostSecret,
        cpuCount: manifest.machine.cpuCount,
        memoryMb: manifest.memory.memoryMb,
        close,
      };
    } catch (error) {
      await close();
      throw error;
    }
  }

  async remove(id: string): Promise<void> {
    const { repository, volumes } = this.#options;
    await repository.remove(id);
    const names = (await volumes.listSnapshots()).filter((name) => name !== id && checkpointOf(name) === id);
    for (const name of [id, ...names]) await volumes.removeSnapshot(name);
  }

  /** Resolves when nothing is left of what was put off. */
  async idle(): Promise<void> {
    await this.#merges.idle();
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await this.#merges.close();
  }

  async #sumsOf(disks: readonly { readonly name: string }[]): Promise<readonly LayerSum[]> {
    const paths: string[] = [];
    for (const { name } of disks) paths.push(...(await this.#options.volumes.ownLayersOf(name)));
    return await this.#sums.of(paths);
  }

  /** What a machine runs under, which need not be what this node starts VMs with today. */
  #vmmOf({ vm: { record } }: Machine) {
    return { kind: record.kind, build: record.build ?? this.#options.host.build };
  }

  #facts(request: CaptureRequest, files: readonly LayerSum[] | undefined) {
    const { host } = this.#options;
    const { id, kind, sandboxId, templateId, cpuCount, envd, machine } = request;
    const drives = machine.drives.map(({ drive }) => drive);
    return {
      ...{ kind, cpu: host.cpu, ...machine.boot },
      source: { sandboxId, templateId },
      names: request.names ?? [],
      disk: { state: snapshotState(id, drives, files), paths: [] },
      vmm: this.#vmmOf(machine),
      machine: { cpuCount, drives: ['root', 'tools', ...drives.map(({ label }) => label)] },
      envd: { hostSecret: envd.hostSecret, version: envd.version, bootId: envd.bootId ?? '' },
    };
  }
}

/**
 * All that can be done while the guest runs, for its disks and what else there is. What it has written may take the host
 * seconds to write: it is not waited for when there is no guest any more.
 * @throws AenvError `vm_died`, why it could not be captured
 */
async function prepared(
  vm: Machine['vm'],
  disks: Disks,
  more: (signal: AbortSignal) => readonly Promise<void>[] = () => [],
): Promise<void> {
  await whileItLives(vm, (signal) =>
    allEnded([...disks.map(({ volume }) => volume.prepareSnapshot()), ...more(signal)]),
  );
}

/**
 * What a guest is asked, given up when there is no guest any more: nobody would answer for minutes.
 * @throws AenvError `vm_died`; what the guest throws
 */
async function whileItLives<T>(vm: Machine['vm'], ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const died = new AenvError('vm_died', `VM ${vm.record.incarnation} has ended`);
  void vm.exited.then(() => over.abort(died)).catch(() => over.abort(died));
  const gone = Promise.withResolvers<never>();
  over.signal.addEventListener('abort', () => gone.reject(died));
  return await Promise.race([ask(over.signal), gone.promise]);
}

function cannotGoOn({ kind, sandboxId }: CaptureRequest, why: string): AenvError {
  return new AenvError(
    'snapshot_incompatible',
    `a ${kind} of sandbox '${sandboxId}' could not be continued here, since it was started before a change of this node: ${why}`,
    {
      remediation:
        'Pause it without its memory (`memory: false`), which boots its disk later, or start the daemon with the QEMU that it runs under (`vmm.qemu`).',
    },
  );
}

/**
 * Making a base takes a while, so what is waited for keeps its delta, and gets a base when it was answered. Forks share one
 * from the beginning where they would have much twice, and go with this daemon.
 */
function commitOptions({ kind, continued = 1 }: CaptureRequest): CommitOptions {
  if (kind === 'fork') return { durable: false, continued };
  return { asNewBase: false };
}

/** A snapshot is started often; of a pause only what would make each start slow is worth it. */
function isWorthMerging(kind: CaptureRequest['kind'], { delta, memoryMb }: SnapshotManifest['memory']): boolean {
  if (delta === undefined || kind === 'fork') return false;
  return kind === 'snapshot' || delta.dataBytes + delta.zeroBytes > memoryMb * 2 ** 20 * LARGE_DELTA;
}

/**
 * Whether there is such a checkpoint, as a whole.
 * @param drives how many its sandbox has besides its root
 */
export async function hasCheckpoint(
  repository: SnapshotRepository,
  volumes: Pick<BlockStore, 'listSnapshots'>,
  { id, memory }: CheckpointRef,
  drives: number,
): Promise<boolean> {
  const [manifests, disks] = await Promise.all([repository.list(), volumes.listSnapshots()]);
  const manifest = manifests.find((candidate) => candidate.id === id);
  const names = [id, ...Array.from({ length: drives }, (_, at) => driveSnapshot(id, at + 1))];
  if (!memory) return names.every((name) => disks.includes(name));
  if (manifest === undefined) return false;
  const origins = [diskOf(manifest), ...drivesOf(manifest).map(({ disk }) => disk)];
  return origins.every((origin) => origin.kind === 'layers' || disks.includes(origin.snapshot));
}

/** The disks of a machine, with the names that snapshots of them have. */
function disksOf(id: string, { volume, drives }: Machine) {
  return [
    { name: id, volume },
    ...drives.map((drive, at) => ({ name: driveSnapshot(id, at + 1), volume: drive.volume })),
  ];
}
