import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NotFoundError, type Sandbox } from 'e2b';
import { aenv } from '../harness/cli.ts';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

const CANARY = 'canary-7f3a91';
const ROUNDS = 20;

let daemon: TestDaemon;
let sandbox: Sandbox;
let id: string;
let started: number;
before(async () => {
  daemon = await TestDaemon.start({ env: { AENV_METRICS_SAMPLE_SECONDS: '1' } });
  sandbox = await createSandbox(daemon, { envs: { SECRET: CANARY } });
  started = Date.now();
  id = sandbox.sandboxId;
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

interface Logs {
  readonly logs: readonly { readonly timestamp: string; readonly line: string }[];
  readonly logEntries: readonly { readonly level: string; readonly message: string; readonly fields: object }[];
}

const logs = async () => (await (await daemon.api('GET', `/sandboxes/${id}/logs`)).json()) as Logs;
const said = async (pattern: RegExp) => (await logs()).logEntries.some(({ message }) => pattern.test(message));

test('metrics have a point within 30 s of the start, with what the guest has', async () => {
  await until(async () => (await sandbox.getMetrics()).length > 0, { timeoutMs: 30_000, what: 'a first point' });
  const [first] = await sandbox.getMetrics();
  assert.ok(first);
  assert.ok(first.timestamp.getTime() - started < 30_000);
  assert.equal(first.cpuCount, 1);
  assert.ok(first.cpuUsedPct >= 0 && first.cpuUsedPct <= 100);
  assert.ok(first.memTotal > 400 * 2 ** 20 && first.memTotal <= 512 * 2 ** 20);
  assert.ok(first.memUsed > 0 && first.memUsed < first.memTotal);
  assert.ok(first.diskTotal > 2 ** 30 && first.diskUsed > 0 && first.diskUsed < first.diskTotal);
  const before = { start: new Date(started - 600_000), end: new Date(started - 300_000) };
  assert.deepEqual(await sandbox.getMetrics(before), []);
  const answer = await daemon.api('GET', `/sandboxes/metrics?sandbox_ids=${id},inone`);
  const { sandboxes } = (await answer.json()) as { sandboxes: Record<string, { timestampUnix: number }> };
  assert.deepEqual(Object.keys(sandboxes), [id]);
  assert.ok(Math.abs((sandboxes[id]?.timestampUnix ?? 0) - Date.now() / 1000) < 30);
});

test('T48: 8 busy loops on one processor: it still serves, and the metrics show them and a file that grows', async () => {
  const idle = (await sandbox.getMetrics()).at(-1);
  assert.ok(idle);
  await sandbox.files.write('file', 'content');
  const loops = await sandbox.commands.run(
    'head -c 50000000 /dev/zero > large; for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait',
    {
      background: true,
      timeoutMs: 0,
    },
  );
  const take = async (work: () => Promise<unknown>) => {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const begin = performance.now();
      await work();
      times.push(performance.now() - begin);
    }
    return times.sort((a, b) => a - b)[Math.ceil(ROUNDS * 0.95) - 1] ?? 0;
  };
  const p95 = {
    health: await take(async () => assert.ok(await sandbox.isRunning())),
    exec: await take(() => sandbox.commands.run('true')),
    read: await take(() => sandbox.files.read('file')),
  };
  for (const [what, ms] of Object.entries(p95)) assert.ok(ms < 2000, `${what}: p95 ${Math.round(ms)} ms`);
  const busy = async () => {
    const last = (await sandbox.getMetrics()).at(-1);
    return last !== undefined && last.cpuUsedPct > 80 && last.diskUsed - idle.diskUsed > 40_000_000;
  };
  await until(busy, { timeoutMs: 30_000, what: 'the load in the metrics' });
  await loops.kill();
});

test('T46: logs tell the life of the sandbox and of its processes, without arguments and variables', async () => {
  const { pid } = await sandbox.commands.run(`sleep 300 # ${CANARY}`, { background: true });
  await until(() => said(new RegExp(`process ${pid} started: /bin/bash \\(3 arguments\\)`)), {
    timeoutMs: 30_000,
    what: 'the start of a process',
  });
  await sandbox.commands.kill(pid);
  await until(() => said(new RegExp(`process ${pid} ended: signal: killed`)), {
    timeoutMs: 30_000,
    what: 'its end',
  });
  assert.ok(await said(/^sandbox created$/));
  assert.ok(await said(/^sandbox running$/));
  const all = await logs();
  assert.equal(all.logs.length, all.logEntries.length);
  for (const { line } of all.logs) {
    const parsed = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual(
      [typeof parsed.level, typeof parsed.logger, typeof parsed.message],
      ['string', 'string', 'string'],
    );
  }
  assert.ok(!JSON.stringify(all).includes(CANARY));
  assert.ok(!(await daemon.log()).includes(CANARY));

  const newest = await daemon.api('GET', `/v2/sandboxes/${id}/logs?direction=backward&limit=1&search=ENDED`);
  const { logs: found } = (await newest.json()) as { logs: readonly { readonly message: string }[] };
  assert.equal(found.length, 1);
  assert.match(found[0]?.message ?? '', /ended/);
});

test('the CLI shows both, and the log outlives the sandbox', async () => {
  const metrics = await aenv(daemon, ['metrics', id, '--output', 'table']);
  assert.equal(metrics.code, 0, metrics.stderr);
  assert.match(metrics.stdout.toString(), /^TIME +CPU +MEMORY +DISK\n.*% of 1/);
  const following = aenv(daemon, ['logs', id, '-f']);
  await sandbox.kill();
  const { code, stdout, stderr } = await following;
  assert.equal(code, 0, stderr);
  assert.match(stdout.toString(), /sandbox running[\s\S]*sandbox ended \(killed\)\n$/);
  await assert.rejects(sandbox.getMetrics(), NotFoundError);
  assert.ok(await said(/^sandbox ended \(killed\)$/));
});
