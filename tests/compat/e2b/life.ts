import assert from 'node:assert/strict';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import { METADATA, type SdkBed } from './bed.ts';

const left = (info: { endAt: Date }) => info.endAt.getTime() - Date.now();

export const life: Group<SdkBed> = {
  title: 'Life of a sandbox',
  scenarios: [
    {
      name: 'create with template, metadata, variables and a time to live',
      async run(bed) {
        const sandbox = await bed.main();
        assert.match(sandbox.sandboxId, /^i[a-z0-9]{20}$/);
        assert.equal(await sandbox.isRunning(), true);
      },
    },
    {
      name: 'secured unless told otherwise: nothing without the token of the sandbox',
      async run(bed) {
        const url = `https://${(await bed.main()).getHost(49983)}/files?path=/etc/passwd`;
        const answer = await fetch(url);
        assert.equal(answer.status, 401);
        assert.equal(((await answer.json()) as { code: number }).code, 401);
      },
    },
    {
      name: 'describe it: times, size, template, metadata, state',
      async run(bed) {
        const sandbox = await bed.main();
        for (const info of [await sandbox.getInfo(), await bed.sdk.Sandbox.getInfo(sandbox.sandboxId, bed.options)]) {
          assert.equal(info.sandboxId, sandbox.sandboxId);
          assert.equal(info.name, 'base');
          assert.match(info.templateId, /^[a-z0-9]{20}$/);
          assert.deepEqual(info.metadata, { ...METADATA, version: bed.version });
          assert.equal(info.state, 'running');
          assert.deepEqual([info.cpuCount, info.memoryMB], [1, 512]);
          assert.match(info.envdVersion, /^0\.\d+\.\d+$/);
          assert.ok(Date.now() - info.startedAt.getTime() < 600_000);
          assert.ok(left(info) > 0 && left(info) <= 600_000, `${left(info)} ms left`);
        }
      },
    },
    {
      name: 'set a longer and a shorter time to live',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.setTimeout(900_000);
        assert.ok(left(await sandbox.getInfo()) > 850_000);
        await bed.sdk.Sandbox.setTimeout(sandbox.sandboxId, 300_000, bed.options);
        const rest = left(await sandbox.getInfo());
        assert.ok(rest > 280_000 && rest <= 300_500, `${rest} ms left`);
      },
    },
    {
      name: 'connect by id: the same sandbox, its files and its access',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.files.write('kept', 'yes');
        const again = await bed.sdk.Sandbox.connect(sandbox.sandboxId, { ...bed.options, timeoutMs: 600_000 });
        assert.equal(again.sandboxId, sandbox.sandboxId);
        assert.equal(await again.files.read('kept'), 'yes');
        assert.ok(left(await again.getInfo()) > 550_000);
        assert.equal(await (await sandbox.connect({ ...bed.options, timeoutMs: 600_000 })).isRunning(), true);
      },
    },
    {
      name: 'connect never makes a life shorter',
      since: '2.23.0',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.setTimeout(600_000);
        await bed.sdk.Sandbox.connect(sandbox.sandboxId, { ...bed.options, timeoutMs: 10_000 });
        assert.ok(left(await sandbox.getInfo()) > 550_000);
      },
    },
    {
      name: 'metrics: processor, memory and disk',
      async run(bed) {
        const sandbox = await bed.main();
        await until(async () => (await sandbox.getMetrics()).length > 0, { timeoutMs: 60_000, what: 'a first point' });
        const metrics = (await sandbox.getMetrics()).at(-1);
        assert.ok(metrics);
        assert.equal(metrics.cpuCount, 1);
        assert.ok(metrics.cpuUsedPct >= 0 && metrics.cpuUsedPct <= 100);
        assert.ok(metrics.memUsed > 0 && metrics.memUsed < metrics.memTotal);
        assert.ok(metrics.memTotal > 400 * 2 ** 20 && metrics.memTotal <= 512 * 2 ** 20);
        assert.ok(metrics.diskUsed > 0 && metrics.diskUsed < metrics.diskTotal);
        assert.ok(Math.abs(metrics.timestamp.getTime() - Date.now()) < 30_000);
      },
    },
    {
      name: 'metrics of a range of time',
      since: '2.45.0',
      async run(bed) {
        const sandbox = await bed.main();
        const { startedAt } = await sandbox.getInfo();
        const before = (ms: number) => new Date(startedAt.getTime() - ms);
        assert.deepEqual(await sandbox.getMetrics({ start: before(600_000), end: before(300_000) }), []);
        assert.ok((await sandbox.getMetrics({ start: before(10_000), end: new Date() })).length > 0);
      },
    },
  ],
};

/** The last ones of the second sandbox. */
export const kills: Group<SdkBed> = {
  title: 'Kill',
  scenarios: [
    {
      name: 'kill while a command runs: its stream breaks with a clear error',
      async run(bed) {
        const sandbox = await bed.second();
        const command = await sandbox.commands.run('echo begun; sleep 300', { background: true, timeoutMs: 0 });
        await until(() => command.stdout === 'begun\n', { timeoutMs: 60_000, what: 'it runs' });
        const outcome = command.wait().catch((error: unknown) => error);
        assert.equal(await bed.sdk.Sandbox.kill(sandbox.sandboxId, bed.options), true);
        const error = await outcome;
        assert.ok(error instanceof Error, 'the stream ended as if all were well');
        if (bed.from('2.45.0')) {
          assert.ok(error instanceof bed.sdk.TimeoutError, String(error));
          assert.match(error.message, /The sandbox was killed or reached its end of life/);
        }
      },
    },
    {
      name: 'killed twice: the second time it was not there, and it does not run',
      async run(bed) {
        const sandbox = await bed.second();
        assert.equal(await bed.sdk.Sandbox.kill(sandbox.sandboxId, bed.options), false);
        assert.equal(await sandbox.isRunning(), false);
        await assert.rejects(
          bed.sdk.Sandbox.connect(sandbox.sandboxId, bed.options),
          bed.from('2.23.0') ? bed.sdk.SandboxNotFoundError : bed.sdk.NotFoundError,
        );
      },
    },
  ],
};

/** The last one of the other. */
export const ends: Group<SdkBed> = {
  title: 'End',
  scenarios: [
    {
      name: 'the time to live runs out: it ends by itself',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.setTimeout(1_000);
        await until(async () => !(await sandbox.isRunning()), { timeoutMs: 60_000, what: 'it has ended' });
        await assert.rejects(sandbox.files.read('/etc/passwd'), bed.sdk.TimeoutError);
        const list = () => bed.sdk.Sandbox.list({ ...bed.options, query: { state: ['running'] } }).nextItems();
        const listed = async () => (await list()).some(({ sandboxId }) => sandboxId === sandbox.sandboxId);
        await until(async () => !(await listed()), { timeoutMs: 60_000, what: 'it is no longer listed' });
      },
    },
  ],
};
