import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { bootWithRetry } from './boot-with-retry.ts';
import type { MicroVm } from './contract/micro-vm.ts';
import type { BootPlan } from './fake/boot-plan.ts';
import { createFakeDriver } from './fake/driver.ts';
import { fakeSpec } from './fake/harness.ts';

const policy = { attempts: 3, hangMs: 1_000, log: silentLogger };

async function setUp(t: TestContext, plans: BootPlan[]) {
  const folder = await mkdtemp(join(tmpdir(), 'boot-'));
  const driver = createFakeDriver({ plan: () => plans.shift() ?? { kind: 'ok' } });
  t.after(async () => {
    await driver.host.close();
    await rm(folder, { recursive: true });
  });
  const makeSpec = (attempt: number) => fakeSpec(folder, 2000 + attempt);
  /** polls envd as a daemon does */
  const ready = async (vm: MicroVm, signal: AbortSignal) => {
    const address = driver.vm(vm.record.incarnation).spec.network.hostAddress;
    for (;;) {
      const answer = await fetch(`http://${address}:${ENVD_PORT}/health`, { signal }).catch(() => undefined);
      if (answer?.status === 204) return;
      signal.throwIfAborted();
      await delay(10);
    }
  };
  return { driver, makeSpec, ready };
}

test('a guest that comes up at once takes one attempt', async (t) => {
  const { driver, makeSpec, ready } = await setUp(t, []);
  const { vm, attempts } = await bootWithRetry(driver, makeSpec, ready, policy);
  assert.equal(attempts, 1);
  assert.equal(vm.state, 'running');
});

test('a boot that hangs and one that dies are repeated under new incarnations, and nothing of them is left', async (t) => {
  const { driver, makeSpec, ready } = await setUp(t, [{ kind: 'hang' }, { kind: 'die', afterMs: 10 }]);
  const { vm, attempts } = await bootWithRetry(driver, makeSpec, ready, policy);
  assert.equal(attempts, 3);
  assert.equal(new Set(driver.host.started.map((one) => one.record.incarnation)).size, 3);
  assert.deepEqual([...driver.host.vms.keys()], [vm.record.incarnation]);
});

test('after the last attempt the error carries the last lines of each', async (t) => {
  const { driver, makeSpec, ready } = await setUp(t, [
    { kind: 'die', lastLine: 'no root' },
    { kind: 'hang' },
    { kind: 'die', lastLine: 'no init' },
  ]);
  await assert.rejects(bootWithRetry(driver, makeSpec, ready, policy), {
    code: 'boot_failed',
    message: /attempt 1: .*no root.*attempt 2: no sign of life for 1000 ms.*booting.*attempt 3: .*no init/s,
  });
  assert.equal(driver.host.started.length, 3);
  assert.equal(driver.host.vms.size, 0);
});

test('a cancelled boot ends with the reason and leaves nothing', async (t) => {
  const { driver, makeSpec, ready } = await setUp(t, [{ kind: 'hang' }]);
  const cancel = new AbortController();
  const booting = bootWithRetry(driver, makeSpec, ready, { ...policy, hangMs: 60_000 }, cancel.signal);
  setTimeout(() => cancel.abort(new Error('client gone')), 50);
  await assert.rejects(booting, /client gone/);
  assert.equal(driver.host.started.length, 1);
  assert.equal(driver.host.vms.size, 0);
});

test('what the guest answers by itself and a VMM that does not start are not repeated', async (t) => {
  const { driver, makeSpec } = await setUp(t, [{ kind: 'ok' }, { kind: 'refuse', message: 'bad drive' }]);
  const refuse = () => Promise.reject(new Error('envd refused'));
  await assert.rejects(bootWithRetry(driver, makeSpec, refuse, policy), /envd refused/);
  assert.equal(driver.host.vms.size, 0);
  await assert.rejects(bootWithRetry(driver, makeSpec, refuse, policy), /bad drive/);
  assert.equal(driver.host.started.length, 1);
});

test('a guest that comes a step further gets the whole time again, one that does not is given up', async (t) => {
  const { driver, makeSpec } = await setUp(t, []);
  const slow = async (_vm: MicroVm, signal: AbortSignal, alive: () => void) => {
    for (let step = 0; step < 4; step++) {
      await delay(60, undefined, { signal });
      alive();
    }
  };
  const limits = { ...policy, attempts: 1, hangMs: 150 };
  assert.equal((await bootWithRetry(driver, makeSpec, slow, limits)).attempts, 1);
  const stuck = async (_vm: MicroVm, signal: AbortSignal, alive: () => void) => {
    alive();
    await delay(60_000, undefined, { signal });
  };
  await assert.rejects(
    bootWithRetry(driver, (n) => makeSpec(n + 10), stuck, limits),
    /no sign of life for 150 ms/,
  );
});
