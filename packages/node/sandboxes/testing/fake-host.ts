import type { BlockDevice, BlockStore } from '@aenv/block/contract.ts';
import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import type { HookResult, RestoreEvent } from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { SlotPool } from '@aenv/network/slots/contract.ts';
import type { MicroVm, VmExit } from '@aenv/vmm/contract/micro-vm.ts';
import type { BootParts, Checkpoints } from '../checkpoints/contract.ts';
import type { AttachedDrive } from '../drives/contract.ts';
import type { ConnectEnvd } from '../envd-client/envd-client.ts';
import type { GuestService, StartService } from '../guest-service/contract.ts';
import { newIncarnation } from '../identity.ts';
import type { BootVm, LaunchOptions, RestoreVm } from '../launch/launch.ts';

/** Named points of the journey, at which a test can fail it or hold it. */
export type Point =
  | 'acquire'
  | 'create'
  | 'attach'
  | 'boot'
  | 'restore'
  | 'health'
  | 'init'
  | 'unfreeze'
  | 'hooks'
  | 'service'
  | 'admit'
  | 'capture'
  | 'captured'
  | 'sync'
  | 'resume'
  | 'stop'
  | 'release'
  | 'remove'
  | 'forget';

type Hook = (signal?: AbortSignal) => void | Promise<void>;

interface FakeCheckpoint {
  readonly hostSecret: string;
  readonly bootId: string;
  readonly drives: readonly AttachedDrive[];
  /** default: what machines boot here */
  readonly boot?: BootParts;
}

/** A host that exists only in memory: it knows what is held, and breaks where it is told to. */
export class FakeHost implements LaunchOptions {
  readonly slotsInUse = new Set<number>();
  readonly volumesOnDisk = new Set<string>();
  readonly vms = new Map<string, FakeVm>();
  readonly checkpointsOnDisk = new Map<string, FakeCheckpoint>();
  /** uses of checkpoints whose files cannot go yet */
  readonly opened = new Set<object>();
  readonly inits: InitRequest[] = [];
  /** of the machines that were booted or continued */
  readonly shapes: Parameters<RestoreVm>[1][] = [];
  readonly reached: Point[] = [];
  /** why guests were let go on */
  readonly released: (RestoreEvent | undefined)[] = [];
  readonly hooks = new Map<Point, Hook>();
  /** what the guest answers about its hooks, and what came of them */
  guestHooks: HookResult[] = [];
  readonly restoreLimits = { guestMs: 5_000, hooksMs: 5_000 };
  readonly vmParts = { kernel: '/k', initramfs: '/i', kernelArgs: 'quiet', toolsDrive: '/t' };
  readonly boot = { kernel: { digest: 'k', path: '/k' }, toolsDrive: { digest: 't', path: '/t' } };
  /** what a capture of each VM would write */
  privateBytes = 0;
  #boots = 0;
  /** boot id of the guest that is being continued; one at a time */
  #restoring: string | undefined;

  /** Everything that is held now, as text; empty when nothing is. */
  inventory(): string[] {
    return [
      ...[...this.slotsInUse].map((index) => `slot ${index}`),
      ...[...this.volumesOnDisk].map((id) => `volume ${id}`),
      ...[...this.vms.keys()].map((incarnation) => `vm ${incarnation}`),
      ...[...this.checkpointsOnDisk.keys()].map(() => 'checkpoint'),
    ];
  }

  async pass(point: Point, signal?: AbortSignal): Promise<void> {
    this.reached.push(point);
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
    await this.hooks.get(point)?.(signal);
  }

  /** The lowest free slot comes first, so that addresses are used again at once. */
  readonly slots: SlotPool = {
    acquire: async (_policy, signal) => {
      await this.pass('acquire', signal);
      let index = 0;
      while (this.slotsInUse.has(index)) index++;
      this.slotsInUse.add(index);
      return slot(index);
    },
    release: async ({ index }) => {
      await this.pass('release');
      this.slotsInUse.delete(index);
    },
    setPolicy: async () => {},
    stats: () => ({ ready: 0, inUse: this.slotsInUse.size }),
    close: async () => {},
  };

  readonly volumes: BlockStore = {
    create: async (id, { sizeBytes }) => {
      await this.pass('create');
      this.volumesOnDisk.add(id);
      return this.#volume(id, sizeBytes);
    },
    open: async (id) => {
      if (!this.volumesOnDisk.has(id)) throw new AenvError('block_daemon_failed', `there is no disk ${id}`);
      return this.#volume(id, 0);
    },
    list: async () => [...this.volumesOnDisk],
    remove: async (id) => {
      this.volumesOnDisk.delete(id);
    },
    removeSnapshot: async () => {},
    listSnapshots: async () => [],
    layersOf: async () => [],
    ownLayersOf: async () => [],
  };

  readonly checkpoints: Checkpoints = {
    admit: async () => {
      await this.pass('admit');
      return { [Symbol.dispose]: () => {} };
    },
    capture: async ({ id, memory, machine, envd, then }, admitted = false) => {
      if (!admitted) await this.pass('admit');
      if (memory === false) await this.pass('sync');
      await machine.vm.pause();
      await this.pass('capture');
      await machine.vm.capture({ deviceState: '/devices', memory: { data: () => {}, zero: () => {} } });
      const drives = machine.drives.map(({ drive }) => drive);
      const { boot } = machine;
      this.checkpointsOnDisk.set(id, { hostSecret: envd.hostSecret, bootId: envd.bootId ?? '', drives, boot });
      try {
        await this.pass('captured');
        if (then === 'go_on') await machine.vm.resume();
      } catch (error) {
        this.checkpointsOnDisk.delete(id);
        throw error;
      }
      return { bytes: this.privateBytes, ms: {} };
    },
    disksOf: async ({ id }, drives) => {
      if (!this.checkpointsOnDisk.has(id)) throw new Error(`no checkpoint ${id}`);
      const disk = (snapshot: string) => ({ kind: 'snapshot', snapshot }) as const;
      return { disk: disk(id), drives: drives.map((drive, at) => ({ drive, disk: disk(`${id}.${at + 1}`) })) };
    },
    goOn: async ({ vm }) => await vm.resume(),
    open: async (id) => {
      const checkpoint = this.checkpointsOnDisk.get(id);
      if (checkpoint === undefined) throw new AenvError('snapshot_not_found', `no checkpoint ${id}`);
      this.#restoring = checkpoint.bootId;
      const use = {};
      this.opened.add(use);
      return {
        image: { deviceState: '/devices', memoryBase: '/memory' },
        disk: { kind: 'snapshot', snapshot: id },
        drives: checkpoint.drives.map((drive, at) => ({
          ...{ drive, disk: { kind: 'snapshot', snapshot: `${id}.${at + 1}` } as const },
        })),
        boot: checkpoint.boot ?? this.boot,
        hostSecret: checkpoint.hostSecret,
        cpuCount: 1,
        memoryMb: 512,
        close: async () => void this.opened.delete(use),
      };
    },
    remove: async (id) => {
      await this.pass('forget');
      this.checkpointsOnDisk.delete(id);
    },
  };

  readonly restoreVm: RestoreVm = async (sandboxId, shape, _image, signal) => {
    await this.pass('restore', signal);
    this.shapes.push(shape);
    if (!this.slotsInUse.has(shape.network.index)) throw new Error('the VM got a slot that nobody holds');
    const vm = new FakeVm(this, newIncarnation(sandboxId));
    vm.state = 'paused';
    this.vms.set(vm.record.incarnation, vm);
    return vm;
  };

  readonly bootVm: BootVm = async (sandboxId, plan, ready, signal) => {
    await this.pass('boot', signal);
    this.shapes.push(plan);
    const vm = new FakeVm(this, newIncarnation(sandboxId));
    this.vms.set(vm.record.incarnation, vm);
    try {
      if (!this.slotsInUse.has(plan.network.index)) throw new Error('the VM got a slot that nobody holds');
      await ready(vm, signal, () => {});
      return vm;
    } catch (error) {
      await vm.stop();
      throw error;
    }
  };

  readonly services: GuestService[] = [];
  readonly startService: StartService = async ({ service, signal }) => {
    await this.pass('service', signal);
    this.services.push(service);
  };

  readonly connectEnvd: ConnectEnvd = () => ({
    waitHealthy: (signal) => this.pass('health', signal),
    sync: (_secret, signal) => this.pass('sync', signal),
    init: async (request, _secrets, signal) => {
      await this.pass('init', signal);
      this.inits.push(request);
      if (request.letGo === true) this.released.push(request.event);
      const restored = this.#restoring;
      this.#restoring = undefined;
      const number = String(++this.#boots).padStart(12, '0');
      return {
        ...{ bootId: restored ?? `00000000-0000-4000-8000-${number}`, envdVersion: '0.6.13', steps: { kernel: 1 } },
        ...(request.letGo === true ? { hooks: this.guestHooks.length } : {}),
      };
    },
    freeze: async () => true,
    unfreeze: async (_secret, { event, stay }, signal) => {
      if (stay === true) return 0;
      await this.pass('unfreeze', signal);
      this.released.push(event);
      return this.guestHooks.length;
    },
    runHooks: async (_secret, _request, signal) => {
      await this.pass('hooks', signal);
      return this.guestHooks;
    },
  });

  #volume(id: string, sizeBytes: number): BlockDevice {
    return {
      id,
      sizeBytes,
      attach: async () => {
        await this.pass('attach');
        return { kind: 'nbd', socket: `/volumes/${id}`, export: id, readOnly: false };
      },
      prepareSnapshot: async () => {},
      snapshot: async (snapshot) => ({ snapshot, swapMs: 0, durable: Promise.resolve() }),
      allocatedBytes: async () => 0,
      remove: async () => {
        await this.pass('remove');
        this.volumesOnDisk.delete(id);
      },
    };
  }
}

class FakeVm implements MicroVm {
  readonly record;
  readonly exited: Promise<VmExit>;
  state: MicroVm['state'] = 'running';
  readonly #host: FakeHost;
  readonly #exit: (exit: VmExit) => void;

  constructor(host: FakeHost, incarnation: string) {
    this.#host = host;
    this.record = {
      kind: 'fake' as const,
      incarnation,
      process: { pid: 1, startTime: 1 },
      runDir: `/run/${incarnation}`,
      serialLog: `/log/${incarnation}`,
      memoryBase: '/memory',
    };
    const { promise, resolve } = Promise.withResolvers<VmExit>();
    this.exited = promise;
    this.#exit = resolve;
  }

  async pause(): Promise<void> {
    this.#refuseWhenEnded();
    this.state = 'paused';
  }

  async resume(): Promise<void> {
    this.#refuseWhenEnded();
    if (this.state === 'running') return;
    await this.#host.pass('resume');
    this.#refuseWhenEnded();
    this.state = 'running';
  }

  async privateBytes(): Promise<number> {
    return this.#host.privateBytes;
  }

  async changedBytes(): Promise<number> {
    return this.#host.privateBytes;
  }

  async capture(): Promise<void> {
    this.#refuseWhenEnded();
  }

  async stop(): Promise<void> {
    await this.#host.pass('stop');
    this.#end({ reason: 'stopped', code: null, signal: 'SIGKILL', lastLines: '' });
  }

  /** The process goes by itself. */
  die(lastLines: string): void {
    this.#end({ reason: 'died', code: 1, signal: null, lastLines });
  }

  #refuseWhenEnded(): void {
    if (this.state === 'exited') throw new AenvError('vm_died', `VM ${this.record.incarnation} has ended`);
  }

  #end(exit: VmExit): void {
    this.state = 'exited';
    this.#host.vms.delete(this.record.incarnation);
    this.#exit(exit);
  }
}

function slot(index: number): NetworkSlot {
  return { index, netns: `/netns/${index}`, tap: 'tap0', hostAddress: `10.200.0.${index}`, uid: 790_000 + index };
}
