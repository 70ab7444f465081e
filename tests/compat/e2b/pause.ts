import assert from 'node:assert/strict';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import type { Sandbox, SdkBed } from './bed.ts';

/** The oldest version has it under another name, which does not take the options of the sandbox along. */
function pause(bed: SdkBed, { sandboxId }: Sandbox): Promise<boolean> {
  const { Sandbox } = bed.sdk;
  return bed.from('2.23.0') ? Sandbox.pause(sandboxId, bed.options) : Sandbox.betaPause(sandboxId, bed.options);
}

export const pausing: Group<SdkBed> = {
  title: 'Pause',
  scenarios: [
    {
      name: 'pause and connect: listed as paused, then the same processes, files and access',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.files.write('before', 'kept');
        const job = await sandbox.commands.run('sleep 5000', { background: true, timeoutMs: 0 });
        await job.disconnect();
        assert.equal(await pause(bed, sandbox), true);
        assert.equal(await sandbox.isRunning(), false);
        assert.equal((await sandbox.getInfo()).state, 'paused');
        const paused = await bed.sdk.Sandbox.list({ ...bed.options, query: { state: ['paused'] } }).nextItems();
        assert.deepEqual(
          paused.map(({ sandboxId }) => sandboxId),
          [sandbox.sandboxId],
        );
        assert.equal(await pause(bed, sandbox), false);

        const again = await bed.sdk.Sandbox.connect(sandbox.sandboxId, { ...bed.options, timeoutMs: 600_000 });
        assert.equal(await again.files.read('before'), 'kept');
        assert.ok((await sandbox.commands.list()).some(({ pid }) => pid === job.pid));
        assert.equal(await sandbox.commands.kill(job.pid), true);
        assert.equal((await sandbox.getInfo()).state, 'running');
      },
    },
    {
      name: 'the time to live runs out: paused where that was asked for, and connect brings it back',
      since: '2.23.0',
      async run(bed) {
        const sandbox = await bed.second();
        await sandbox.files.write('before', 'kept');
        await sandbox.setTimeout(1_000);
        const state = async () => (await sandbox.getInfo()).state;
        await until(async () => (await state()) === 'paused', { timeoutMs: 90_000, what: 'it is paused' });
        await sandbox.connect({ ...bed.options, timeoutMs: 600_000 });
        assert.equal(await sandbox.files.read('before'), 'kept');
      },
    },
    {
      name: 'autoResume: a request to a paused sandbox brings it back and is answered',
      since: '2.23.0',
      async run(bed) {
        const sandbox = await bed.second();
        assert.equal(await pause(bed, sandbox), true);
        assert.equal((await sandbox.getInfo()).state, 'paused');
        assert.equal(await sandbox.files.read('before'), 'kept');
        assert.equal((await sandbox.getInfo()).state, 'running');
        await sandbox.setTimeout(600_000);
      },
    },
    {
      name: 'pause without memory: connect boots the disk as it was, as the same sandbox',
      since: '2.45.0',
      async run(bed) {
        const sandbox = await bed.second();
        await sandbox.files.write('before', 'on the disk');
        const job = await sandbox.commands.run('sleep 5000', { background: true, timeoutMs: 0 });
        await job.disconnect();
        assert.equal(await sandbox.pause({ ...bed.options, keepMemory: false }), true);
        assert.equal(await sandbox.isRunning(), false);
        assert.equal((await sandbox.getInfo()).state, 'paused');
        await sandbox.connect({ ...bed.options, timeoutMs: 600_000 });
        assert.equal(await sandbox.isRunning(), true);
        assert.equal(await sandbox.files.read('before'), 'on the disk');
        assert.deepEqual(await sandbox.commands.list(), []);
      },
    },
  ],
};

/** Needs room for one more sandbox. */
export const forking: Group<SdkBed> = {
  title: 'Fork',
  scenarios: [
    {
      name: 'fork: a sandbox of its own that goes on from where the source is',
      since: '2.45.0',
      async run(bed) {
        const source = await bed.main();
        await source.files.write('state', 'common');
        const job = await source.commands.run('sleep 5000', { background: true, timeoutMs: 0 });
        await job.disconnect();
        const [child] = await source.fork({ ...bed.options, timeoutMs: 300_000 });
        assert.ok(child instanceof bed.sdk.Sandbox, String(child));
        try {
          assert.notEqual(child.sandboxId, source.sandboxId);
          assert.ok((await child.commands.list()).some(({ pid }) => pid === job.pid));
          await child.files.write('state', 'of the child');
          assert.equal(await source.files.read('state'), 'common');
          assert.equal(await child.files.read('state'), 'of the child');
        } finally {
          await child.kill();
        }
      },
    },
  ],
};
