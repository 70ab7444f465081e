import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { CapturedFiles } from './captured-files.ts';
import type { ContractHarness } from './harness.ts';
import { type MicroVm, PAGE_SIZE, type VmSpec } from './micro-vm.ts';

export interface ContractCheck {
  readonly name: string;
  readonly run: (harness: ContractHarness) => Promise<void>;
}

/** What every VMM must do, each a check of its own. */
export const CONTRACT: readonly ContractCheck[] = [
  {
    name: 'a started VM runs under the names of its spec',
    async run(harness) {
      const driver = await harness.openDriver();
      const spec = await harness.makeSpec();
      const vm = await driver.start(spec);
      assert.equal(vm.state, 'running');
      assert.equal(vm.record.kind, driver.kind);
      assert.equal(vm.record.incarnation, spec.incarnation);
      assert.equal(vm.record.runDir, spec.runDir);
      assert.equal(vm.record.serialLog, spec.serialLog);
      assert.equal((await stat(spec.runDir)).mode & 0o777, 0o700);
      assert.ok(await harness.processExists(vm.record));
      await vm.stop();
    },
  },
  {
    name: 'a paused VM is silent on old and new connections, a resumed one goes on where it was',
    async run(harness) {
      const { vm, connection } = await bootAndDial(harness);
      await vm.pause();
      await vm.pause();
      assert.equal(vm.state, 'paused');
      assert.equal(
        await connection.asks(harness.patience.silence),
        false,
        'an old connection is answered while paused',
      );
      assert.equal(
        await connection.asksAnew(harness.patience.silence),
        false,
        'a new connection is answered while paused',
      );
      await vm.resume();
      await vm.resume();
      assert.equal(vm.state, 'running');
      assert.equal(await connection.asksAnew(harness.patience.boot), true, 'no answer after resume');
      await vm.stop();
      await connection.close();
    },
  },
  {
    name: 'stop leaves no process, no run folder and nothing that answers, and keeps the serial log',
    async run(harness) {
      const { spec, vm, connection } = await bootAndDial(harness);
      await Promise.all([vm.stop(), vm.stop()]);
      await vm.stop();
      assert.equal(vm.state, 'exited');
      assert.equal((await endOf(harness, vm)).reason, 'stopped');
      await assertGone(harness, vm, spec);
      assert.equal(await connection.asks(harness.patience.silence), false, 'an old connection is answered after stop');
      assert.equal(
        await connection.asksAnew(harness.patience.silence),
        false,
        'a new connection is answered after stop',
      );
      assert.ok((await stat(spec.serialLog)).size > 0, 'the serial log is empty');
      await assertEnded(vm);
      await connection.close();
    },
  },
  {
    name: 'a paused VM can be stopped',
    async run(harness) {
      const driver = await harness.openDriver();
      const spec = await harness.makeSpec();
      const vm = await driver.start(spec);
      await vm.pause();
      await vm.stop();
      assert.equal((await endOf(harness, vm)).reason, 'stopped');
      await assertGone(harness, vm, spec);
    },
  },
  {
    name: 'a VM that ends behind the back of its driver is reported as died',
    async run(harness) {
      const driver = await harness.openDriver();
      const spec = await harness.makeSpec();
      const vm = await driver.start(spec);
      await harness.crash(vm);
      assert.equal((await endOf(harness, vm)).reason, 'died');
      assert.equal(vm.state, 'exited');
      await assertGone(harness, vm, spec);
      await assertEnded(vm);
      await vm.stop();
    },
  },
  {
    name: 'an incarnation that runs is not started again and not disturbed, and two VMs are two',
    async run(harness) {
      const driver = await harness.openDriver();
      const spec = await harness.makeSpec();
      const vm = await driver.start(spec);
      await assert.rejects(driver.start(spec), { code: 'boot_failed' });
      assert.equal(vm.state, 'running');
      assert.ok(await harness.processExists(vm.record));
      await stat(spec.runDir);
      const other = await driver.start(await harness.makeSpec());
      assert.notEqual(other.record.incarnation, vm.record.incarnation);
      await vm.stop();
      assert.equal(other.state, 'running');
      assert.ok(await harness.processExists(other.record));
      await other.stop();
    },
  },
  {
    name: 'a VM outlives its driver and is adopted with its state',
    async run(harness) {
      const { spec, vm, driver, connection } = await bootAndDial(harness);
      await vm.pause();
      await driver.close();
      const adopted = await (await harness.openDriver()).adopt(vm.record);
      assert.ok(adopted !== undefined, 'not adopted');
      assert.equal(adopted.state, 'paused');
      assert.deepEqual(adopted.record, vm.record);
      await adopted.resume();
      assert.equal(await connection.asksAnew(harness.patience.boot), true, 'no answer after adoption');
      await adopted.stop();
      assert.equal((await endOf(harness, adopted)).reason, 'stopped');
      await assertGone(harness, adopted, spec);
      await connection.close();
    },
  },
  {
    name: 'the death of an adopted VM is reported, and a VM that is gone is not adopted',
    async run(harness) {
      const driver = await harness.openDriver();
      const spec = await harness.makeSpec();
      const vm = await driver.start(spec);
      await driver.close();
      const next = await harness.openDriver();
      const adopted = await next.adopt(vm.record);
      assert.ok(adopted !== undefined, 'not adopted');
      await harness.crash(adopted);
      assert.equal((await endOf(harness, adopted)).reason, 'died');
      await assertGone(harness, adopted, spec);
      assert.equal(await next.adopt(vm.record), undefined);
    },
  },
  {
    name: 'a captured VM runs on, and is continued elsewhere as often as one likes, standing still until it is resumed',
    async run(harness) {
      const { driver, spec: booted, vm, connection } = await bootAndDial(harness);
      await assert.rejects(vm.capture(await CapturedFiles.target(vm)), { code: 'capture_failed' }, 'while it runs');
      await vm.pause();
      await assert.rejects(CapturedFiles.withoutRoom(vm), { code: 'no_space' }, 'the disk is full');
      await using files = await CapturedFiles.of(vm, booted);
      assert.equal(vm.state, 'paused');
      await vm.resume();
      assert.equal(await connection.asksAnew(harness.patience.boot), true, 'no answer after the capture');
      for (const spec of [await harness.makeSpec(), await harness.makeSpec()]) {
        const copy = await driver.restore(spec, files.image);
        assert.equal(copy.state, 'paused');
        assert.equal(copy.record.memoryBase, files.image.memoryBase);
        const other = await harness.dial(spec);
        assert.equal(await other.asksAnew(harness.patience.silence), false, 'it runs before it is resumed');
        await copy.resume();
        assert.equal(await other.asksAnew(harness.patience.boot), true, 'no answer after the restore');
        await copy.stop();
        await other.close();
      }
      assert.equal(await files.unchanged(), true, 'the base of the memory was written to');
      await vm.stop();
      await connection.close();
    },
  },
  {
    name: 'what a continued VM captures are the pages that it changed, which lead to it with the same base',
    async run(harness) {
      const { driver, spec: booted, vm, connection } = await bootAndDial(harness);
      await connection.close();
      await vm.pause();
      await using files = await CapturedFiles.of(vm, booted);
      await vm.stop();
      const spec = await harness.makeSpec();
      const first = await driver.restore(spec, files.image);
      await first.resume();
      const other = await harness.dial(spec);
      assert.equal(await other.asksAnew(harness.patience.boot), true);
      await first.pause();
      const [atMost, exactly] = [await first.privateBytes(), await first.changedBytes()];
      await using changed = await CapturedFiles.of(first, spec);
      assert.ok(changed.pages * PAGE_SIZE <= atMost, `${changed.pages} pages, and ${atMost} bytes were foretold`);
      assert.equal(changed.pages * PAGE_SIZE, exactly);
      await first.stop();
      await other.close();
      assert.ok(changed.pages > 0 && changed.pages <= files.pages, `${changed.pages} pages of ${files.pages} changed`);
      const next = await harness.makeSpec();
      const second = await driver.restore(next, {
        ...changed.image,
        memoryBase: files.image.memoryBase,
        delta: changed.give,
      });
      await second.resume();
      const last = await harness.dial(next);
      assert.equal(await last.asksAnew(harness.patience.boot), true, 'no answer after base and changes');
      await second.stop();
      await last.close();
      assert.equal(await files.unchanged(), true, 'the base of the memory was written to');
    },
  },
  {
    name: 'an image with damaged parts or of another size is refused, and nothing is left',
    async run(harness) {
      const { driver, spec: booted, vm, connection } = await bootAndDial(harness);
      await connection.close();
      await vm.pause();
      await using files = await CapturedFiles.of(vm, booted);
      await vm.stop();
      const spec = await harness.makeSpec();
      const broken = [
        { ...files.image, deviceState: `${files.image.deviceState}.none` },
        { ...files.image, memoryBase: `${files.image.memoryBase}.none` },
        { ...files.image, deviceState: files.image.memoryBase },
        { ...files.image, delta: () => Promise.reject(new AenvError('no_space', 'as planned')) },
      ];
      for (const image of broken) {
        await assert.rejects(driver.restore(spec, image), (error) =>
          ['restore_failed', 'no_space'].includes(codeOf(error)),
        );
        assert.equal(await exists(spec.runDir), false, 'the run folder was left');
      }
    },
  },
  {
    name: 'more drives than possible and a cancelled start are refused and leave nothing',
    async run(harness) {
      const driver = await harness.openDriver();
      const spec = await harness.makeSpec();
      const [drive] = spec.drives;
      const source = drive?.source ?? { kind: 'file', path: spec.kernel, format: 'raw', readOnly: true };
      const drives = Array.from({ length: driver.maxDrives + 1 }, (_, index) => ({ name: `d${index}`, source }));
      await assert.rejects(driver.start({ ...spec, drives }), { code: 'boot_failed' });
      const cancel = new AbortController();
      const starting = driver.start(spec, cancel.signal);
      cancel.abort(new Error('cancelled by the test'));
      await assert.rejects(starting, /cancelled by the test/);
      assert.equal(await exists(spec.runDir), false, 'the run folder was left');
      assert.ok(await exists(dirname(spec.runDir)));
      // The same names may be used, since nothing runs under them.
      await (await driver.start(spec)).stop();
    },
  },
];

/** Runs the contract as tests. */
export function testContract(name: string, makeHarness: () => Promise<ContractHarness>): void {
  describe(`the contract of a VMM, kept by ${name}`, () => {
    let harness: ContractHarness;
    before(async () => {
      harness = await makeHarness();
    });
    after(() => harness.close());
    for (const check of CONTRACT) test(check.name, { timeout: 60_000 }, () => check.run(harness));
  });
}

async function bootAndDial(harness: ContractHarness) {
  const driver = await harness.openDriver();
  const spec = await harness.makeSpec();
  const vm = await driver.start(spec);
  const connection = await harness.dial(spec);
  const deadline = Date.now() + harness.patience.boot;
  while (!(await connection.asksAnew(harness.patience.silence))) {
    assert.ok(Date.now() < deadline && vm.state === 'running', 'the guest did not come up');
    await delay(20);
  }
  return { driver, spec, vm, connection };
}

async function endOf(harness: ContractHarness, vm: MicroVm) {
  const late = new AbortController();
  try {
    const result = await Promise.race([vm.exited, delay(harness.patience.end, undefined, { signal: late.signal })]);
    assert.ok(result !== undefined, 'the end of the VM was not reported');
    return result;
  } finally {
    late.abort();
  }
}

async function assertGone(harness: ContractHarness, vm: MicroVm, spec: VmSpec): Promise<void> {
  assert.equal(await harness.processExists(vm.record), false, 'the process was left');
  assert.equal(await exists(spec.runDir), false, 'the run folder was left');
}

async function assertEnded(vm: MicroVm): Promise<void> {
  await assert.rejects(vm.pause(), { code: 'vm_died' });
  await assert.rejects(vm.resume(), { code: 'vm_died' });
}

function codeOf(error: unknown): string {
  return error instanceof AenvError ? error.code : '';
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
