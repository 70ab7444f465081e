import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { FakeHost } from '../fake/driver.ts';
import { fakeHarness } from '../fake/harness.ts';
import type { CaptureTarget, MicroVm, VmDriver, VmExit, VmRecord, VmShape } from './micro-vm.ts';
import { CONTRACT } from './suite.ts';

/** A driver whose VMs are changed by `mutate`. */
function mutateVms(driver: VmDriver, mutate: (vm: MicroVm, spec: VmShape | undefined) => MicroVm): VmDriver {
  return {
    ...driver,
    start: async (spec, signal) => mutate(await driver.start(spec, signal), spec),
    restore: async (shape, image, signal) => mutate(await driver.restore(shape, image, signal), shape),
    async adopt(record) {
      const vm = await driver.adopt(record);
      return vm === undefined ? undefined : mutate(vm, undefined);
    },
  };
}

/** A VM that behaves as another one, except where told. */
class Mutant implements MicroVm {
  readonly record: VmRecord;
  protected readonly vm: MicroVm;

  constructor(vm: MicroVm) {
    this.vm = vm;
    this.record = vm.record;
  }

  get state() {
    return this.vm.state;
  }

  get exited(): Promise<VmExit> {
    return this.vm.exited;
  }

  pause() {
    return this.vm.pause();
  }

  resume() {
    return this.vm.resume();
  }

  privateBytes() {
    return this.vm.privateBytes();
  }

  changedBytes() {
    return this.vm.changedBytes();
  }

  capture(target: CaptureTarget) {
    return this.vm.capture(target);
  }

  stop() {
    return this.vm.stop();
  }
}

class ForetellsTooLittle extends Mutant {
  override async privateBytes() {
    return 0;
  }
}

class Miscounts extends Mutant {
  override async changedBytes() {
    return (await this.vm.changedBytes()) + 1;
  }
}

class DropsPause extends Mutant {
  #paused = false;

  override get state() {
    return this.#paused && this.vm.state === 'running' ? 'paused' : this.vm.state;
  }

  override async pause() {
    if (this.vm.state === 'exited') await this.vm.pause();
    this.#paused = true;
  }

  override async resume() {
    await this.vm.resume();
    this.#paused = false;
  }
}

class NeverResumes extends Mutant {
  override async resume() {
    if (this.vm.state === 'exited') await this.vm.resume();
  }
}

class NeverReportsItsEnd extends Mutant {
  override get exited() {
    return new Promise<VmExit>(() => {});
  }
}

class ReportsEveryEndAsStopped extends Mutant {
  override get exited() {
    return this.vm.exited.then((end) => ({ ...end, reason: 'stopped' as const }));
  }
}

class LeavesRunDir extends Mutant {
  override async stop() {
    await this.vm.stop();
    await mkdir(this.record.runDir, { recursive: true });
  }
}

class PausesAfterItsEnd extends Mutant {
  override async pause() {
    if (this.vm.state !== 'exited') await this.vm.pause();
  }
}

/** Its guest's port goes on answering after stop. */
function keepsSocketOpen(driver: VmDriver, open: (close: () => void) => void): VmDriver {
  return mutateVms(driver, (vm, spec) => {
    const stop = vm.stop.bind(vm);
    let server: ReturnType<typeof createServer> | undefined;
    return Object.assign(new Mutant(vm), {
      async stop() {
        await stop();
        if (server !== undefined || spec === undefined) return;
        server = createServer((_request, response) => response.writeHead(204).end());
        const listening = Promise.withResolvers<void>();
        server.listen(ENVD_PORT, spec.network.hostAddress, listening.resolve);
        await listening.promise;
        open(() => {
          server?.close();
          server?.closeAllConnections();
        });
      },
    });
  });
}

/** The second VM goes by the name of the first. */
function reusesIncarnation(driver: VmDriver): VmDriver {
  let first: string | undefined;
  return mutateVms(driver, (vm) => {
    first ??= vm.record.incarnation;
    return Object.assign(new Mutant(vm), { record: { ...vm.record, incarnation: first } });
  });
}

/** An incarnation that runs is handed out once more. */
function startsTwice(driver: VmDriver, host: FakeHost): VmDriver {
  return { ...driver, start: async (spec, signal) => host.vms.get(spec.incarnation) ?? driver.start(spec, signal) };
}

const open: (() => void)[] = [];
const mutants: readonly [string, string, (driver: VmDriver, host: FakeHost) => VmDriver][] = [
  ['drops a pause', 'a paused VM is silent', (driver) => mutateVms(driver, (vm) => new DropsPause(vm))],
  ['never resumes', 'a paused VM is silent', (driver) => mutateVms(driver, (vm) => new NeverResumes(vm))],
  [
    'foretells less than it captures',
    'what a continued VM captures',
    (driver) => mutateVms(driver, (vm) => new ForetellsTooLittle(vm)),
  ],
  ['miscounts its pages', 'what a continued VM captures', (driver) => mutateVms(driver, (vm) => new Miscounts(vm))],
  ['keeps a socket open', 'stop leaves no process', (driver) => keepsSocketOpen(driver, (close) => open.push(close))],
  ['reuses an incarnation', 'an incarnation that runs', reusesIncarnation],
  ['starts an incarnation twice', 'an incarnation that runs', startsTwice],
  ['leaves its run folder', 'a paused VM can be stopped', (driver) => mutateVms(driver, (vm) => new LeavesRunDir(vm))],
  ['never reports an end', 'a VM that ends behind', (driver) => mutateVms(driver, (vm) => new NeverReportsItsEnd(vm))],
  [
    'calls a death a stop',
    'a VM that ends behind',
    (driver) => mutateVms(driver, (vm) => new ReportsEveryEndAsStopped(vm)),
  ],
  ['pauses after its end', 'stop leaves no process', (driver) => mutateVms(driver, (vm) => new PausesAfterItsEnd(vm))],
  [
    'ends its VMs when it is closed',
    'a VM outlives its driver',
    (driver, host) => ({ ...driver, close: () => host.close() }),
  ],
  [
    'takes any number of drives',
    'more drives than possible',
    (driver) => ({ ...driver, start: takesAnything(driver) }),
  ],
];

function takesAnything(driver: VmDriver): VmDriver['start'] {
  return (spec, signal) => driver.start({ ...spec, drives: [] }, signal);
}

for (const [what, checkName, mutate] of mutants) {
  test(`a driver that ${what} fails the contract`, async (t) => {
    const check = CONTRACT.find(({ name }) => name.startsWith(checkName));
    assert.ok(check !== undefined, `no check '${checkName}'`);
    const harness = await fakeHarness(mutate);
    t.after(async () => {
      for (const close of open.splice(0)) close();
      await harness.close();
    });
    await assert.rejects(check.run(harness), { name: 'AssertionError' });
  });
}
