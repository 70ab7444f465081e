import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlockDevice, BlockStore } from '@aenv/block/contract.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { MicroVm } from '@aenv/vmm/contract/micro-vm.ts';
import type { CaptureRequest } from '../../sandboxes/checkpoints/contract.ts';
import { NodeCheckpoints } from '../checkpoints.ts';
import { DiskSpace } from '../disk-space.ts';
import type { FileSum } from '../repository/hash-file.ts';
import { HOST, Lab, MEMORY_MB, PAGE } from '../repository/testing/lab.ts';

/** A guest whose memory is pages by number; what it has written since it was started is found when it is captured. */
export interface TestGuest {
  readonly memoryBase: string;
  readonly pages: Map<number, number>;
}

/** Checkpoints over a real repository, of machines that exist only here; a disk is one file with the name of its snapshot. */
export class KeptMachines implements AsyncDisposable {
  readonly lab: Lab;
  readonly checkpoints: NodeCheckpoints;
  readonly disks = new Set<string>();
  readonly steps: string[] = [];
  /** of files that guests boot */
  readonly seals = new Map<string, FileSum>();

  private constructor(lab: Lab) {
    this.lab = lab;
    const step = (name: string) => async () => void this.steps.push(name);
    this.checkpoints = new NodeCheckpoints({
      repository: lab.repository,
      volumes: this.volumes,
      host: HOST,
      sealOf: async (path) => this.seals.get(path),
      space: new DiskSpace({ folder: lab.folder, keepFreeBytes: 0 }),
      guests: { prepare: async () => {}, freeze: step('freeze'), unfreeze: step('unfreeze'), sync: step('sync') },
      log: silentLogger,
    });
  }

  static async open(): Promise<KeptMachines> {
    const lab = await Lab.open();
    await mkdir(join(lab.folder, 'disks'));
    return new KeptMachines(lab);
  }

  /** One that was just booted. */
  boot(): TestGuest {
    return { memoryBase: this.lab.zeros, pages: new Map() };
  }

  /** Starts a guest from what was kept, as a VMM does. */
  async restore(id: string): Promise<TestGuest> {
    const { image, close } = await this.checkpoints.open(id);
    const pages = new Map<number, number>();
    await image.delta?.({
      data: (offset, bytes) => {
        for (let at = 0; at < bytes.length; at += PAGE) pages.set((offset + at) / PAGE, bytes[at] ?? 0);
      },
      zero: (offset, length) => {
        for (let at = 0; at < length; at += PAGE) pages.set((offset + at) / PAGE, 0);
      },
    });
    await close();
    return { memoryBase: image.memoryBase, pages };
  }

  request(guest: TestGuest, id: string, more: Partial<CaptureRequest> = {}): CaptureRequest {
    const { lab } = this;
    const artefact = (name: string) => ({ digest: name, path: join(lab.folder, name) });
    const { kind = 'pause' } = more;
    const then = kind === 'pause' ? ('stay_paused' as const) : ('go_on' as const);
    const vm = {
      record: { kind: HOST.kind, memoryBase: guest.memoryBase },
      exited: new Promise(() => {}),
      privateBytes: async () => guest.pages.size * PAGE,
      changedBytes: async () => guest.pages.size * PAGE,
      pause: async () => void this.steps.push('pause'),
      resume: async () => void this.steps.push('resume'),
      capture: async (draft: Parameters<MicroVm['capture']>[0]) => {
        this.steps.push('capture');
        const changes = [...guest.pages].sort(([a], [b]) => a - b).map(([page, value]) => ({ page, count: 1, value }));
        await lab.capture(draft as Parameters<Lab['capture']>[0], changes);
      },
    };
    const volume = {
      prepareSnapshot: async () => {},
      snapshot: async (snapshot: string) => {
        this.steps.push('disk');
        await writeFile(this.diskOf(snapshot), `layer of ${snapshot}`);
        this.disks.add(snapshot);
        return { snapshot, swapMs: 0, durable: Promise.resolve() };
      },
    };
    return {
      ...{ id, kind, then, sandboxId: 'i1', templateId: 't1', cpuCount: 1 },
      machine: {
        vm: vm as unknown as MicroVm,
        volume: volume as unknown as BlockDevice,
        drives: [],
        address: '192.0.2.1',
        boot: { kernel: artefact('kernel'), toolsDrive: artefact('tools') },
      },
      ...{ memoryMb: MEMORY_MB, diskSizeMb: 1, envd: { hostSecret: 'secret', version: '0.6.13' } },
      ...more,
    };
  }

  /** File of the layer that a disk has written. */
  diskOf(id: string): string {
    return join(this.lab.folder, 'disks', id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.checkpoints.close();
    await this.lab[Symbol.asyncDispose]();
  }

  get volumes(): BlockStore {
    const never = async () => {
      throw new Error('no disk is made here');
    };
    return {
      create: never,
      open: never,
      list: async () => [],
      remove: async () => {},
      layersOf: async (id) => [this.diskOf(id)],
      ownLayersOf: async (id) => [this.diskOf(id)],
      listSnapshots: async () => [...this.disks],
      removeSnapshot: async (id) => void this.disks.delete(id),
    };
  }
}
