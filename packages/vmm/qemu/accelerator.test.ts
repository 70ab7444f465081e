import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { type ChooseAcceleratorOptions, chooseAccelerator } from './accelerator.ts';
import type { QemuInstall } from './install/qemu-install.ts';

const PANIC = 'Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)';

/** A QEMU that does what the shell script says and counts its runs, and a device node that is there. */
async function host(t: TestContext, script: string) {
  const folder = await mkdtemp(join(tmpdir(), 'accelerator-'));
  t.after(() => rm(folder, { recursive: true }));
  const system = join(folder, 'qemu');
  const runs = join(folder, 'runs');
  await writeFile(runs, '');
  await writeFile(system, `#!/bin/sh\necho "$*" >>${runs}\n${script}\n`);
  await chmod(system, 0o755);
  await writeFile(join(folder, 'kvm'), '');
  const install: QemuInstall = { version: '10.0.2', system, env: {} };
  const options: ChooseAcceleratorOptions = {
    install,
    kernel: { path: '/kernel', digest: 'k1' },
    assetsDir: join(folder, 'assets'),
    mode: 'auto',
    log: silentLogger,
    limitMs: 400,
    device: join(folder, 'kvm'),
  };
  return { options, folder, runs: async () => (await readFile(runs, 'utf8')).split('\n').slice(0, -1) };
}

test('a test boot that goes well gives KVM, and is not repeated', async (t) => {
  const { options, runs } = await host(t, `echo '${PANIC}'`);
  assert.equal((await chooseAccelerator(options)).accelerator, 'kvm');
  assert.equal((await chooseAccelerator(options)).accelerator, 'kvm');
  const [only, ...more] = await runs();
  assert.match(only ?? '', /-accel kvm/);
  assert.deepEqual(more, []);
});

test('a guest that hangs gives TCG within the limit', async (t) => {
  const { options, runs } = await host(t, 'exec sleep 60');
  const start = Date.now();
  const choice = await chooseAccelerator(options);
  assert.equal(choice.accelerator, 'tcg');
  assert.match(choice.reason, /did not end in time/);
  assert.ok(Date.now() - start < 3_000);
  await chooseAccelerator(options);
  assert.equal((await runs()).length, 1, 'the answer is kept');
});

test('a guest that ends without having come up gives TCG', async (t) => {
  const { options } = await host(t, 'echo "Linux version"');
  assert.equal((await chooseAccelerator(options)).accelerator, 'tcg');
  const refused = await host(t, 'echo "Could not access KVM kernel module" >&2; exit 1');
  assert.match((await chooseAccelerator(refused.options)).reason, /Could not access KVM/);
});

test('another kernel or another QEMU is tried anew, and a damaged cache counts as none', async (t) => {
  const { options, runs } = await host(t, `echo '${PANIC}'`);
  await chooseAccelerator(options);
  await chooseAccelerator({ ...options, kernel: { path: '/kernel', digest: 'k2' } });
  await chooseAccelerator({ ...options, install: { ...options.install, version: '10.0.3' } });
  assert.equal((await runs()).length, 3);
  await writeFile(join(options.assetsDir, 'accelerator.json'), '{"key":');
  await chooseAccelerator(options);
  assert.equal((await runs()).length, 4);
});

test('the configuration decides without a boot, and demands no KVM that is not there', async (t) => {
  const { options, runs } = await host(t, 'exit 1');
  assert.equal((await chooseAccelerator({ ...options, mode: 'kvm' })).accelerator, 'kvm');
  assert.equal((await chooseAccelerator({ ...options, mode: 'tcg' })).accelerator, 'tcg');
  const without = { ...options, device: '/dev/nonexistent-kvm' };
  assert.equal((await chooseAccelerator(without)).accelerator, 'tcg');
  await assert.rejects(chooseAccelerator({ ...without, mode: 'kvm' }), { code: 'host_unsupported' });
  assert.deepEqual(await runs(), []);
});
