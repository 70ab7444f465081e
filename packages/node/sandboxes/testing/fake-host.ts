import type { BlockDevice, BlockStore } from '@aenv/block/contract.ts';
import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { SlotPool } from '@aenv/network/slots/contract.ts';
import type { MicroVm, VmExit } from '@aenv/vmm/contract/micro-vm.ts';
import type { ConnectEnvd } from '../envd-client/envd-client.ts';
import { newIncarnation } from '../identity.ts';
import type { BootVm, LaunchOptions } from '../launch/launch.ts';

/** Named points of the journey, at which a test can fail it or hold it. */
export type Point = 'acquire' | 'create' | 'attach' | 'boot' | 'health' | 'init' | 'stop' | 'release' | 'remove';

type Hook = (signal?: AbortSignal) => void | Promise<void>;

/** A host that exists only in memory: it knows what is held, and breaks where it is told to. */
export class FakeHost implements LaunchOptions {
  readonly slotsInUse = new Set<number>();
  readonly volumesOnDisk = new Set<string>();
  readonly vms = new Map<string, FakeVm>();
  readonly inits: InitRequest[] = [];
  readonly reached: Point[] = [];
  readonly hooks = new Map<Point, Hook>();
  readonly vmParts = { kernel: '/k', initramfs: '/i', kernelArgs: 'quiet', toolsDrive: '/t' };
  #boots = 0;

  /** Everything that is held now, as text; empty when nothing is. */
  inventory(): string[] {
    return [
      ...[...this.slotsInUse].map((index) => `slot ${index}`),
      ...[...this.volumesOnDisk].map((id) => `volume ${id}`),
      ...[...this.vms.keys()].map((incarnation) => `vm ${incarnation}`),
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
    list: async () => [...this.volumesOnDisk],
    remove: async (id) => {
      this.volumesOnDisk.delete(id);
    },
    listSnapshots: async () => [],
    removeSnapshot: async () => {},
  };

  readonly bootVm: BootVm = async (sandboxId, plan, ready, signal) => {
    await this.pass('boot', signal);
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

  readonly connectEnvd: ConnectEnvd = () => ({
    waitHealthy: (signal) => this.pass('health', signal),
    init: async (request, signal) => {
      await this.pass('init', signal);
      this.inits.push(request);
      const number = String(++this.#boots).padStart(12, '0');
      return { bootId: `00000000-0000-4000-8000-${number}`, envdVersion: '0.6.13' };
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
      flushBeforeCapture: async () => {},
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

  async pause(): Promise<void> {}
  async resume(): Promise<void> {}
  async capture(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#host.pass('stop');
    this.#end({ reason: 'stopped', code: null, signal: 'SIGKILL', lastLines: '' });
  }

  /** The process goes by itself. */
  die(lastLines: string): void {
    this.#end({ reason: 'died', code: 1, signal: null, lastLines });
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
