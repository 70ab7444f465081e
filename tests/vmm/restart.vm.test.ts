import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '@aenv/platform/process/identity.ts';
import type { VmRecord, VmSpec } from '@aenv/vmm/contract/micro-vm.ts';
import { TestBed } from './support/bed.ts';

let bed: TestBed;

before(async () => {
  bed = await TestBed.open();
});
after(() => bed.close());

/** Starts a VM from a process of its own, and ends that process as a crash does. */
async function startAndCrash(spec: VmSpec): Promise<VmRecord> {
  const child = spawn(process.execPath, ['--no-warnings', join(import.meta.dirname, 'support/starter.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify({ install: bed.install, memoryDir: bed.memoryDir, spec }));
  let text = '';
  for await (const chunk of child.stdout) {
    text += chunk;
    if (text.endsWith('\n')) break;
  }
  child.kill('SIGKILL');
  await once(child, 'close');
  const record: VmRecord = JSON.parse(text);
  bed.remember(record.process);
  return record;
}

test('a VM outlives a daemon that is killed, and a new one takes it over', async () => {
  const spec = await bed.makeSpec();
  const record = await startAndCrash(spec);
  assert.ok(await isAlive(record.process));
  const vm = await (await bed.openDriver()).adopt(record);
  assert.ok(vm !== undefined);
  const connection = await bed.dial(spec);
  assert.equal(await connection.asksAnew(bed.patience.boot), true);
  await vm.stop();
  const end = await vm.exited;
  assert.equal(end.reason, 'stopped');
  assert.match(end.lastLines, /ready/);
  await connection.close();
  assert.deepEqual(await bed.leftovers(), []);
});

test('a guest that ended while no daemon ran is not adopted, cleaned up, and its console is kept', async () => {
  const spec = await bed.makeSpec('t.poweroff');
  const record = await startAndCrash(spec);
  // Its process stays and waits with the console; give the guest time to end.
  await delay(3_000);
  assert.ok(await isAlive(record.process));
  const driver = await bed.openDriver();
  let adopted = await driver.adopt(record);
  if (adopted !== undefined) {
    // A slow machine: then its end is reported.
    assert.equal((await adopted.exited).reason, 'died');
    adopted = undefined;
  }
  assert.match(await readFile(spec.serialLog, 'utf8'), /0 drives/);
  assert.deepEqual(await bed.leftovers(), []);
});

test('a process that cannot be managed is reported, and left as it is', async () => {
  const spec = await bed.makeSpec('t.hang');
  const driver = await bed.openDriver();
  const vm = await driver.start(spec);
  // QEMU serves one client at a time, so a second one is never greeted.
  const second = await bed.openDriver({ startTimeoutMs: 1_000 });
  await assert.rejects(second.adopt(vm.record), { code: 'vm_died' });
  assert.equal(vm.state, 'running');
  await vm.stop();
  assert.deepEqual(await bed.leftovers(), []);
});
