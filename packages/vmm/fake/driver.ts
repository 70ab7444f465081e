import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { MicroVm, VmDriver, VmmBuild, VmRecord, VmShape, VmSpec } from '../contract/micro-vm.ts';
import type { BootPlan } from './boot-plan.ts';
import { restoreFake } from './fake-memory.ts';
import { FakeVm } from './fake-vm.ts';

const MAX_DRIVES = 16;
const BUILD: VmmBuild = { version: '1', accelerator: 'none', machine: 'fake' };

type Failure = 'boot_failed' | 'restore_failed';

export interface FakeDriverOptions {
  /** decides how each boot goes; all go well by default */
  readonly plan?: (spec: VmSpec) => BootPlan;
  /** the machine that VMs run on; give two drivers the same one for a daemon that was restarted */
  readonly host?: FakeHost;
  /** what the guests' envd says of itself, default that of the real one */
  readonly envdVersion?: string;
  /** what the memory of VMs that boot is said to be mapped from; default a path that is not there */
  readonly zeros?: string;
}

/** Where fake VMs live; they outlive drivers. */
export class FakeHost {
  /** VMs that run, by incarnation */
  readonly vms = new Map<string, FakeVm>();
  /** all that ever started, in their order */
  readonly started: FakeVm[] = [];

  /** Ends all that still run, for the end of a test. */
  async close(): Promise<void> {
    await Promise.all([...this.vms.values()].map((vm) => vm.stop()));
  }
}

export interface FakeDriver extends VmDriver {
  readonly host: FakeHost;
  /** Changes how the next boots go. */
  setPlan(plan: (spec: VmSpec) => BootPlan): void;
  /** A VM that runs; throws when there is none, so that tests need no check. */
  vm(incarnation: string): FakeVm;
}

/**
 * VMs for fast suites: an HTTP server in this process on the address of the slot (127.0.0.0/8), which answers as envd.
 * Nothing else of them is real: no process (their identity is one that never exists), no drives, no isolation.
 */
export function createFakeDriver(options: FakeDriverOptions = {}): FakeDriver {
  const host = options.host ?? new FakeHost();
  let plan = options.plan ?? ((): BootPlan => ({ kind: 'ok' }));
  const envdVersion = options.envdVersion ?? ENVD_VERSION;

  async function launch(
    code: Failure,
    shape: VmShape,
    make: () => Promise<FakeVm>,
    begin: (vm: FakeVm) => Promise<void>,
    signal: AbortSignal | undefined,
  ): Promise<FakeVm> {
    if (shape.drives.length > MAX_DRIVES) throw refused('boot_failed', shape, `it has ${shape.drives.length} drives`);
    await makeRunDir(code, shape);
    let vm: FakeVm | undefined;
    try {
      vm = await make();
      host.vms.set(shape.incarnation, vm);
      host.started.push(vm);
      void vm.exited.then(() => host.vms.delete(shape.incarnation));
      await begin(vm);
      signal?.throwIfAborted();
      return vm;
    } catch (error) {
      await vm?.stop();
      await rm(shape.runDir, { recursive: true, force: true });
      signal?.throwIfAborted();
      throw refused(code, shape, String(error));
    }
  }

  return {
    kind: 'fake',
    build: BUILD,
    driveKinds: ['file', 'nbd', 'device'],
    maxDrives: MAX_DRIVES,
    host,
    setPlan(next) {
      plan = next;
    },
    vm(incarnation) {
      const vm = host.vms.get(incarnation);
      if (vm === undefined) throw new Error(`no VM ${incarnation} runs`);
      return vm;
    },
    async start(spec, signal): Promise<MicroVm> {
      signal?.throwIfAborted();
      const next = plan(spec);
      if (next.kind === 'refuse') throw refused('boot_failed', spec, next.message ?? 'as planned');
      const make = async () => new FakeVm(fakeRecord(spec, options.zeros ?? '/zero'), spec, envdVersion);
      return await launch('boot_failed', spec, make, (vm) => vm.boot(next), signal);
    },
    async restore(shape, image, signal): Promise<MicroVm> {
      signal?.throwIfAborted();
      const make = async () =>
        new FakeVm(fakeRecord(shape, image.memoryBase), shape, envdVersion, await restoreFake(image));
      return await launch('restore_failed', shape, make, (vm) => vm.restore(), signal);
    },
    async adopt(record: VmRecord) {
      const vm = host.vms.get(record.incarnation);
      if (vm === undefined) await rm(record.runDir, { recursive: true, force: true });
      return vm;
    },
    async close() {},
  };
}

function refused(code: Failure, spec: VmShape, why: string): AenvError {
  return new AenvError(code, `VM ${spec.incarnation} did not start: ${why}`);
}

async function makeRunDir(code: Failure, spec: VmShape): Promise<void> {
  await mkdir(dirname(spec.runDir), { recursive: true });
  try {
    await mkdir(spec.runDir, { mode: 0o700 });
  } catch (error) {
    throw new AenvError(code, `VM ${spec.incarnation}: its run folder ${spec.runDir} is in use`, {
      cause: error,
    });
  }
}

/** No process has a negative start time, so nothing that is done to this identity reaches one, least of all this one. */
function fakeRecord(spec: VmShape, memoryBase: string): VmRecord {
  const { incarnation, runDir, serialLog } = spec;
  const identity = { pid: process.pid, startTime: -1 };
  return { kind: 'fake', incarnation, process: identity, runDir, serialLog, memoryBase, build: BUILD };
}
