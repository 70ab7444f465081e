import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { GuestReport } from '@aenv/contracts/envd/host-api.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { CREATE, fixture } from '../testing/fixture.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import type { AskGuest } from './guest-report.ts';
import { Observatory } from './observatory.ts';

const METRICS = {
  cpu_count: 1,
  cpu_used_pct: 50,
  mem_total: 100,
  mem_used: 60,
  mem_cache: 20,
  disk_used: 5,
  disk_total: 10,
};
const report = (change: Partial<GuestReport> = {}): GuestReport => ({
  cursor: 'c',
  lost: 0,
  events: [],
  metrics: METRICS,
  ...change,
});

async function house(t: TestContext, askGuest: AskGuest) {
  const clock = new ManualClock();
  const observatory = new Observatory({
    sampleMs: 5000,
    keepMs: 60_000,
    askGuest,
    openConsole: () => ({ read: async () => ['login:'] }),
    clock,
    log: silentLogger,
  });
  const f = await fixture({ observer: observatory, clock });
  t.after(async () => {
    await observatory.close();
    await f[Symbol.asyncDispose]();
  });
  const logs = (sandboxId: string, logger: string) =>
    observatory
      .logs(sandboxId, { direction: 'forward', limit: 1000 })
      ?.filter((entry) => entry.logger === logger)
      .map((entry) => entry.message);
  return { sandboxes: f.sandboxes, host: f.host, clock, observatory, logs };
}

test('a running sandbox is looked at soon, then at the interval, and no more when it is over', async (t) => {
  const cursors: string[] = [];
  const { sandboxes, clock, observatory } = await house(t, async (_guest, cursor) => {
    cursors.push(cursor);
    return report({ cursor: `c${cursors.length}` });
  });
  const { sandboxId } = await sandboxes.create({ ...CREATE, timeoutSeconds: 3600 });
  assert.deepEqual(observatory.samples(sandboxId), []);
  const begin = clock.now();
  await clock.advance(11_000);
  assert.deepEqual(cursors, ['', 'c1', 'c2']);
  const samples = observatory.samples(sandboxId) ?? [];
  assert.deepEqual(
    samples.map(({ at }) => at - begin),
    [1000, 6000, 11_000],
  );
  assert.deepEqual([samples[0]?.cpuUsedPct, samples[0]?.memUsed, samples[0]?.diskTotal], [50, 60, 10]);
  assert.deepEqual(observatory.latest(sandboxId), samples[2]);
  assert.deepEqual(observatory.samples(sandboxId, begin + 2000, begin + 7000), [samples[1]]);
  await clock.advance(120_000);
  assert.equal(observatory.samples(sandboxId)?.length, 12, 'no more than are kept');
  await sandboxes.kill(sandboxId);
  const asked = cursors.length;
  await clock.advance(20_000);
  assert.equal(cursors.length, asked);
  assert.equal(observatory.samples(sandboxId), undefined);
});

test('looks give way to sandboxes that are started, for ten seconds, the first one for thirty', async (t) => {
  let asked = 0;
  const { sandboxes, clock, observatory } = await house(t, async () => report({ cursor: `${asked++}` }));
  await sandboxes.create({ ...CREATE, timeoutSeconds: 3600 });
  const [first, second] = [observatory.starting(), observatory.starting()];
  await clock.advance(4000);
  first[Symbol.dispose]();
  await clock.advance(4000);
  assert.equal(asked, 0);
  second[Symbol.dispose]();
  await clock.advance(1000);
  assert.equal(asked, 1);
  using _third = observatory.starting();
  await clock.advance(13_000);
  assert.equal(asked, 1);
  await clock.advance(2000);
  assert.equal(asked, 2);
  const { sandboxId } = await sandboxes.create({ ...CREATE, timeoutSeconds: 3600 });
  await clock.advance(29_000);
  assert.equal(observatory.samples(sandboxId)?.length, 0);
  await clock.advance(3000);
  assert.equal(observatory.samples(sandboxId)?.length, 1);
});

test('a guest that answers late is not asked a second time meanwhile, and one that fails is asked again', async (t) => {
  let asked = 0;
  const answers = [Promise.withResolvers<GuestReport>(), Promise.withResolvers<GuestReport>()];
  const { sandboxes, clock, observatory } = await house(t, async () => answers[asked++]?.promise ?? report());
  const { sandboxId } = await sandboxes.create({ ...CREATE, timeoutSeconds: 3600 });
  await clock.advance(30_000);
  assert.equal(asked, 1);
  answers[0]?.reject(new Error('no answer'));
  await clock.advance(6000);
  assert.equal(asked, 2);
  answers[1]?.resolve(report());
  await clock.advance(1000);
  assert.equal(observatory.samples(sandboxId)?.length, 1);
});

test('an end while the guest is asked stops the asking, and the answer counts for nothing', async (t) => {
  let aborted = false;
  const { sandboxes, clock, logs } = await house(t, (_guest, _cursor, signal) => {
    const { promise, resolve } = Promise.withResolvers<GuestReport>();
    signal.addEventListener('abort', () => {
      aborted = true;
      resolve(report({ events: [{ kind: 'start', age: 0, pid: 1, program: 'late', args: 0 }] }));
    });
    return promise;
  });
  const { sandboxId } = await sandboxes.create(CREATE);
  await clock.advance(2000);
  await sandboxes.kill(sandboxId);
  await clock.advance(1000);
  assert.ok(aborted);
  assert.deepEqual(logs(sandboxId, 'process'), []);
});

test('the log tells the life of a sandbox and of its processes, and can be read when it is over', async (t) => {
  const events: GuestReport['events'] = [
    { kind: 'start', age: 700, pid: 7, program: '/bin/bash\u001b[2J', args: 3 },
    { kind: 'end', age: 100, pid: 7, program: '/bin/bash', args: 3, status: 'signal: killed' },
  ];
  let round = 0;
  const { sandboxes, clock, observatory, logs } = await house(t, async () =>
    round++ === 0 ? report({ events, lost: 2 }) : report(),
  );
  const created = clock.now();
  const { sandboxId } = await sandboxes.create({ ...CREATE, envVars: { TOKEN: 'canary' } });
  await clock.advance(1000);
  assert.deepEqual(logs(sandboxId, 'process'), [
    '2 begins and ends of processes were too many to be remembered',
    'process 7 started: /bin/bash[2J (3 arguments)',
    'process 7 ended: signal: killed',
  ]);
  await sandboxes.setTimeout(sandboxId, 10);
  const gone = sandboxes.routes.get(sandboxId)?.gone;
  await clock.advance(20_000);
  await gone;
  assert.deepEqual(logs(sandboxId, 'lifecycle'), [
    'sandbox created',
    'sandbox running',
    `sandbox ends at ${new Date(created + 11_000).toISOString()}`,
    'sandbox ended (expired)',
  ]);
  const everything = observatory.logs(sandboxId, { direction: 'forward', limit: 1000 });
  assert.ok(!JSON.stringify(everything).includes('canary'));
  assert.equal(observatory.logs('iunknown', { direction: 'forward', limit: 1 }), undefined);
});

test('a sandbox that goes on after a pause is asked for what came since, and tells nothing twice', async (t) => {
  const cursors: string[] = [];
  const { sandboxes, clock } = await house(t, async (_guest, cursor) => {
    cursors.push(cursor);
    return report({ cursor: `c${cursors.length}` });
  });
  const { sandboxId } = await sandboxes.create({ ...CREATE, timeoutSeconds: 3600 });
  await clock.advance(1000);
  await sandboxes.pause(sandboxId, { memory: true });
  await sandboxes.resume(sandboxId, 3600);
  await clock.advance(1000);
  assert.deepEqual(cursors, ['', 'c1']);
});

test('what the console says stands in the log as well', async (t) => {
  const { sandboxes, clock, logs } = await house(t, async () => report());
  const { sandboxId } = await sandboxes.create(CREATE);
  await clock.advance(2000);
  assert.deepEqual(logs(sandboxId, 'console'), ['login:']);
});

test('a VM that dies is an error with its last words, and only the last logs are kept', async (t) => {
  const { sandboxes, clock, observatory, logs, host } = await house(t, async () => report());
  const first = await sandboxes.create(CREATE);
  for (const vm of host.vms.values()) vm.die('Kernel panic');
  await clock.advance(1000);
  assert.match(logs(first.sandboxId, 'lifecycle')?.at(-1) ?? '', /^sandbox lost \(vm_died\): .*Kernel panic/);
  for (let count = 0; count < 100; count++) await sandboxes.kill((await sandboxes.create(CREATE)).sandboxId);
  assert.equal(observatory.logs(first.sandboxId, { direction: 'forward', limit: 1 }), undefined);
});
