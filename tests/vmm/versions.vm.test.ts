import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { chooseAccelerator, testBoot } from '@aenv/vmm/qemu/accelerator.ts';
import { ensureQemu } from '@aenv/vmm/qemu/install/ensure.ts';
import { ASSETS, TestBed } from './support/bed.ts';

test('the QEMU of the release boots, is warned of, and gives no VM a memory file that another one can write', async () => {
  const warnings: string[] = [];
  const log = { ...silentLogger, warn: (message: string) => warnings.push(message) };
  const install = await ensureQemu({
    assetsDir: ASSETS,
    log: { ...log, child: () => silentLogger },
    prefer: 'release',
  });
  const bed = await TestBed.open('release');
  try {
    const old = install.version.startsWith('7.');
    assert.equal(warnings.length, old ? 1 : 0);
    const driver = await bed.openDriver();
    assert.equal(driver.build.version, install.version);
    const spec = await bed.makeSpec();
    const vm = await driver.start(spec);
    const maps = await readFile(`/proc/${vm.record.process.pid}/maps`, 'utf8');
    if (old) assert.match(maps, new RegExp(`${spec.incarnation}\\.mem \\(deleted\\)`));
    else assert.doesNotMatch(maps, /\.mem/);
    if (old) assert.deepEqual(await readdir(bed.memoryDir), []);
    const connection = await bed.dial(spec);
    assert.equal(await connection.asksAnew(bed.patience.boot), true);
    await connection.close();
    await vm.stop();
    assert.deepEqual(await bed.leftovers(), []);
  } finally {
    await bed.close();
  }
});

test('the test boot that decides on KVM succeeds where guests run, and ends in time where they do not', async () => {
  const bed = await TestBed.open();
  try {
    const { install, guest } = bed;
    const kernel = guest.kernel.path;
    assert.equal(await testBoot(install, kernel, 'tcg', guest.kernelArgs, { limitMs: 30_000 }), undefined);
    const limits = { limitMs: 1_000 };
    assert.match((await testBoot(install, '/nonexistent', 'tcg', '', limits)) ?? '', /nonexistent/);
    const start = Date.now();
    const { accelerator, reason } = await chooseAccelerator({
      ...{ install, kernel: guest.kernel, assetsDir: bed.root, mode: 'auto', log: silentLogger },
    });
    assert.ok(Date.now() - start < 30_000);
    // Whatever it is here: KVM only after a boot has shown that it works.
    assert.ok(accelerator === 'tcg' || /went well/.test(reason), reason);
  } finally {
    await bed.close();
  }
});
