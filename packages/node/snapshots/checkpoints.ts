import type { BlockStore } from '@aenv/block/contract.ts';
import { allEnded } from '@aenv/platform/rollback/all-ended.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type {
  Captured,
  CaptureRequest,
  Checkpoints,
  Machine,
  OpenCheckpoint,
} from '../sandboxes/checkpoints/contract.ts';
import type { CapturedGuests } from '../sandboxes/restoring/captured-guests.ts';
import type { BootArtefact, HostFacts, SnapshotRepository } from './contract.ts';
import type { DiskSpace } from './disk-space.ts';
import { checkpointOf, diskOf, driveSnapshot, drivesOf, snapshotState } from './disk-state.ts';

export interface CheckpointsOptions {
  readonly repository: SnapshotRepository;
  readonly volumes: BlockStore;
  readonly space: DiskSpace;
  readonly guests: Pick<CapturedGuests, 'freeze' | 'release'>;
  /** what VMs run on here */
  readonly host: HostFacts;
  /** what VMs boot here */
  readonly boot: { readonly kernel: BootArtefact; readonly toolsDrive: BootArtefact };
}

const MIB = 2 ** 20;
/** State of devices, manifests, and what the disk of the sandbox writes meanwhile. */
const MARGIN_BYTES = 16 * MIB;

/** Checkpoints in the repository of this node, their disks as snapshots of the block room. */
export class NodeCheckpoints implements Checkpoints {
  readonly #options: CheckpointsOptions;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
  }

  /**
   * Memory and disk are of one instant: both are taken while the virtual processors stand still. What can be done before
   * or after that is done before or after.
   */
  async capture(request: CaptureRequest): Promise<Captured> {
    const { repository, volumes, space } = this.#options;
    const { id, machine, memoryMb, then } = request;
    const { vm, volume, drives } = machine;
    const disks = [
      { name: id, volume },
      ...drives.map((drive, at) => ({ name: driveSnapshot(id, at + 1), volume: drive.volume })),
    ];
    const memoryBytes = Math.min(memoryMb * MIB, await vm.privateBytes());
    // A base of its own is a file as large as the memory, beside the pages that it is made of.
    const baseBytes = request.shared === true || memoryBytes > memoryMb * MIB * 0.25 ? memoryMb * MIB : 0;
    using _room = await space.reserve(memoryBytes + baseBytes + MARGIN_BYTES, `a ${request.kind}`);
    await using undo = new Rollback();
    await using draft = await repository.begin({ id, memoryBase: vm.record.memoryBase, memoryMb });
    await allEnded(disks.map((disk) => disk.volume.prepareSnapshot()));
    await this.#options.guests.freeze(machine.address, request.envd.hostSecret);
    await vm.pause();
    for (const { name } of disks) undo.add(() => volumes.removeSnapshot(name));
    await vm.capture(draft);
    const taken = await allEnded(disks.map((disk) => disk.volume.snapshot(disk.name)));
    if (then === 'go_on') await this.goOn(machine, request.envd.hostSecret);
    await allEnded(taken.map(({ durable }) => durable));
    // Forks are continued by this daemon or never.
    const kept = request.kind === 'fork' ? { durable: false } : {};
    const manifest = await draft.commit(this.#facts(request), {
      ...kept,
      ...(request.shared === true ? { asNewBase: true } : {}),
    });
    undo.keep();
    return { bytes: manifest.deviceState.sizeBytes + (manifest.memory.delta?.sizeBytes ?? memoryBytes) };
  }

  async goOn({ vm, address }: Machine, hostSecret: string): Promise<void> {
    await vm.resume();
    await this.#options.guests.release(address, hostSecret);
  }

  async open(id: string): Promise<OpenCheckpoint> {
    const { manifest, image, close } = await this.#options.repository.open(id, this.#options.host);
    try {
      return {
        image,
        disk: diskOf(manifest),
        drives: drivesOf(manifest),
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

  #facts(request: CaptureRequest) {
    const { host, boot } = this.#options;
    const { id, kind, sandboxId, templateId, cpuCount, envd } = request;
    const drives = request.machine.drives.map(({ drive }) => drive);
    return {
      ...{ kind, cpu: host.cpu, ...boot },
      source: { sandboxId, templateId },
      names: [],
      disk: { state: snapshotState(id, drives), paths: [] },
      vmm: { kind: host.kind, build: host.build },
      machine: { cpuCount, drives: ['root', 'tools', ...drives.map(({ label }) => label)] },
      envd: { hostSecret: envd.hostSecret, version: envd.version, bootId: envd.bootId ?? '' },
    };
  }
}

/** Whether there is such a checkpoint, as a whole. */
export async function hasCheckpoint(
  repository: SnapshotRepository,
  volumes: Pick<BlockStore, 'listSnapshots'>,
  id: string,
): Promise<boolean> {
  const [manifests, disks] = await Promise.all([repository.list(), volumes.listSnapshots()]);
  const manifest = manifests.find((candidate) => candidate.id === id);
  if (manifest === undefined) return false;
  const origins = [diskOf(manifest), ...drivesOf(manifest).map(({ disk }) => disk)];
  return origins.every((origin) => origin.kind === 'layers' || disks.includes(origin.snapshot));
}
