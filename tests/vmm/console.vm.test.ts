import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { bootWithRetry } from '@aenv/vmm/boot-with-retry.ts';
import type { VmDriver } from '@aenv/vmm/contract/micro-vm.ts';
import { TestBed } from './support/bed.ts';

/** Twice what the console log may take; `AENV_TEST_FLOOD` for more, 67108864 takes minutes. */
const FLOOD = Number(process.env.AENV_TEST_FLOOD ?? 2 * 1024 * 1024);
const BOUND = 1024 * 1024;

let bed: TestBed;
let driver: VmDriver;

before(async () => {
  bed = await TestBed.open();
  driver = await bed.openDriver();
});
after(() => bed.close());

test('a guest that floods its console fills neither the disk nor the run folder, and its last words are kept', async () => {
  const spec = await bed.makeSpec(`t.flood=${FLOOD} t.poweroff`);
  const vm = await driver.start(spec);
  let largest = 0;
  let ended = false;
  void vm.exited.then(() => {
    ended = true;
  });
  while (!ended) {
    const files = [spec.serialLog, `${spec.serialLog}.new`, `${spec.runDir}/stderr.log`];
    const sizes = await Promise.all(files.map(async (file) => (await stat(file).catch(() => ({ size: 0 }))).size));
    largest = Math.max(largest, ...sizes);
    await delay(50);
  }
  const end = await vm.exited;
  assert.ok(largest > 0 && largest <= BOUND, `${largest} bytes`);
  assert.match(end.lastLines, /last words/);
  const log = await readFile(spec.serialLog, 'utf8');
  assert.ok(log.length <= BOUND);
  assert.match(log, new RegExp(`flood ${FLOOD / 64 - 1}\\.`), 'the newest line before the last words');
  assert.deepEqual(await bed.leftovers(), []);
});

test('a guest that powers off is reported as died, with what it printed', async () => {
  const vm = await driver.start(await bed.makeSpec('t.poweroff'));
  const end = await vm.exited;
  assert.equal(end.reason, 'died');
  assert.match(end.lastLines, /0 drives/);
  assert.deepEqual(await bed.leftovers(), []);
});

test('a guest that hangs and one that panics are retried, and the error names both', async () => {
  const args = ['t.hang', 'rdinit=/missing init=/missing'];
  const started: string[] = [];
  const booting = bootWithRetry(
    driver,
    async (attempt) => {
      const spec = await bed.makeSpec(args[attempt - 1]);
      started.push(spec.incarnation);
      return spec;
    },
    (_vm, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    { attempts: 2, hangMs: 8_000, log: silentLogger },
  );
  await assert.rejects(booting, {
    code: 'boot_failed',
    message: /attempt 1: no sign of life for 8000 ms.*boot_id.*attempt 2: it ended.*Kernel panic/s,
  });
  assert.equal(new Set(started).size, 2);
  assert.deepEqual(await bed.leftovers(), []);
});

test('after a failed boot the next one comes up', async () => {
  const args = ['t.poweroff', ''];
  const { vm, attempts } = await bootWithRetry(
    driver,
    (attempt) => bed.makeSpec(args[attempt - 1]),
    async (vm, signal) => {
      while (!(await readFile(vm.record.serialLog, 'utf8').catch(() => '')).includes('ready')) {
        signal.throwIfAborted();
        await delay(100);
      }
    },
    { attempts: 2, hangMs: 20_000, log: silentLogger },
  );
  assert.equal(attempts, 2);
  await vm.stop();
});

test('a VMM that cannot start says why, and leaves nothing', async () => {
  const missing = await bed.makeSpec('', { kernel: '/nonexistent/vmlinux' });
  await assert.rejects(driver.start(missing), { code: 'boot_failed', message: /nonexistent\/vmlinux/ });
  const spec = await bed.makeSpec();
  const elsewhere = { ...spec, network: { ...spec.network, netns: '/run/netns/vmmt-missing' } };
  await assert.rejects(driver.start(elsewhere), { code: 'boot_failed', message: /vmmt-missing/ });
  const foreign = { ...spec, network: { ...spec.network, uid: spec.network.uid + 1000 } };
  await assert.rejects(driver.start(foreign), { code: 'boot_failed', message: /tap0/ });
  assert.deepEqual(await bed.leftovers(), []);
});
