import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { MicroVm, VmDriver, VmRecord, VmSpec } from '../contract/micro-vm.ts';
import type { BootPlan } from './boot-plan.ts';
import { FakeVm } from './fake-vm.ts';

export interface FakeDriverOptions {
  /** decides how each boot goes; all go well by default */
  readonly plan?: (spec: VmSpec) => BootPlan;
  /** the machine that VMs run on; give two drivers the same one for a daemon that was restarted */
  readonly host?: FakeHost;
  /** what the guests' envd says of itself, default `0.5.7` */
  readonly envdVersion?: string;
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

  return {
    kind: 'fake',
    build: { version: '1', accelerator: 'none', machine: 'fake' },
    driveKinds: ['file', 'nbd', 'device'],
    maxDrives: 16,
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
      if (spec.drives.length > this.maxDrives) throw refused(spec, `it has ${spec.drives.length} drives`);
      const next = plan(spec);
      if (next.kind === 'refuse') throw refused(spec, next.message ?? 'as planned');
      await makeRunDir(spec);
      const vm = new FakeVm(fakeRecord(spec), spec, options.envdVersion ?? '0.5.7');
      host.vms.set(spec.incarnation, vm);
      host.started.push(vm);
      void vm.exited.then(() => host.vms.delete(spec.incarnation));
      try {
        await vm.boot(next);
        signal?.throwIfAborted();
      } catch (error) {
        await vm.stop();
        signal?.throwIfAborted();
        throw refused(spec, String(error));
      }
      return vm;
    },
    async adopt(record: VmRecord) {
      const vm = host.vms.get(record.incarnation);
      if (vm === undefined) await rm(record.runDir, { recursive: true, force: true });
      return vm;
    },
    async close() {},
  };
}

function refused(spec: VmSpec, why: string): AenvError {
  return new AenvError('boot_failed', `VM ${spec.incarnation} did not start: ${why}`);
}

async function makeRunDir(spec: VmSpec): Promise<void> {
  await mkdir(dirname(spec.runDir), { recursive: true });
  try {
    await mkdir(spec.runDir, { mode: 0o700 });
  } catch (error) {
    throw new AenvError('boot_failed', `VM ${spec.incarnation}: its run folder ${spec.runDir} is in use`, {
      cause: error,
    });
  }
}

/** No process has a negative start time, so nothing that is done to this identity reaches one, least of all this one. */
function fakeRecord(spec: VmSpec): VmRecord {
  const { incarnation, runDir, serialLog } = spec;
  return { kind: 'fake', incarnation, process: { pid: process.pid, startTime: -1 }, runDir, serialLog };
}
