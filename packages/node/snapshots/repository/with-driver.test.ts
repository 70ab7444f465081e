import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFakeDriver } from '@aenv/vmm/fake/driver.ts';
import { HOST, Lab, MEMORY_MB } from './testing/lab.ts';

test('a machine that a driver captured is restored from the repository, through template, pause and fork', async () => {
  const driver = createFakeDriver();
  await using lab = await Lab.open({ isZeroFile: async (path) => path === '/zero' });
  try {
    const shape = (incarnation: string, host: number) => ({
      incarnation,
      runDir: join(lab.folder, 'vm', incarnation),
      serialLog: join(lab.folder, `${incarnation}.log`),
      cpuCount: 1,
      memoryMb: MEMORY_MB,
      drives: [],
      network: { index: host, netns: '/n', tap: 't', hostAddress: `127.77.8.${host}`, uid: 0 },
    });
    const boot = { kernel: '/k', initramfs: '/i', kernelArgs: '' };
    const first = await driver.start({ ...shape('first', 1), ...boot });
    const steps = [
      { id: 'template', options: { asNewBase: true } },
      { id: 'pause', options: {} },
      { id: 'fork', options: { durable: false } },
    ];
    const { bootId } = driver.vm('first').envd;
    let vm = first;
    for (const [i, { id, options }] of steps.entries()) {
      await vm.pause();
      {
        await using draft = await lab.repository.begin({ id, ...vm.record, memoryMb: MEMORY_MB });
        await vm.capture({ deviceState: draft.deviceState, memory: draft.memory });
        await draft.commit(lab.facts(), options);
      }
      await vm.stop();
      const opened = await lab.repository.open(id, { ...HOST, kind: driver.kind, build: driver.build });
      vm = await driver.restore(shape(`of-${id}`, i + 2), opened.image);
      await opened.close();
      await vm.resume();
      assert.equal(driver.vm(`of-${id}`).envd.bootId, bootId);
    }
  } finally {
    await driver.host.close();
  }
});
