import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { createLaunch } from '../launch/launch.ts';
import { FakeHost } from '../testing/fake-host.ts';
import { CREATE, type Fixture, fixture, recordingLogger } from '../testing/fixture.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { WarmPool, type WarmPoolOptions } from './pool.ts';
import { prepareStanding } from './prepare.ts';

const KEY = { checkpoint: 'base', quiet: false, cpuCount: 1, memoryMb: 512, diskSizeMb: 10_240 };

/** A pool on a host in memory, which has a captured machine. */
function setUp(change: Partial<WarmPoolOptions> = {}) {
  const host = new FakeHost();
  for (const id of ['base', 'other', 'third'])
    host.checkpointsOnDisk.set(id, { hostSecret: 's', bootId: id, drives: [] });
  const clock = new ManualClock();
  const useGuest = async () => void used.push(vms());
  const forgotten: string[] = [];
  /** states of all machines whenever a guest was made use of */
  const used: string[][] = [];
  const pool = new WarmPool({
    ...{ low: 1, high: 2, templates: 2, idleMs: 60_000, answerMs: 1_000, hasRoom: () => true, clock },
    prepare: (key, signal) => prepareStanding(Object.assign(host, { useGuest }), key, signal),
    forget: async (incarnation) => void forgotten.push(incarnation),
    log: recordingLogger([]),
    metrics: silentMetrics,
    ...change,
  });
  const vms = () => [...host.vms.values()].map(({ state }) => state);
  return { host, pool, forgotten, used, vms, pass: (ms: number) => pass(clock, ms) };
}

/** Moves time on, and lets what it set going come to its end. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let gone = 0; gone < ms; gone += 1000) {
    await clock.advance(1000);
    for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

test('machines stand ready up to the high mark, are given away once, and more are made when it is quiet', async () => {
  const { host, pass, pool, vms } = setUp();
  pool.want(KEY);
  await pass(5_000);
  assert.deepEqual(vms(), ['paused', 'paused']);
  // Each is told who it is as a sandbox is, twice, by a name of its own, and entropy each time.
  assert.equal(host.inits.length, 6);
  assert.equal(new Set(host.inits.map(({ seed }) => seed)).size, 6);
  const names = host.inits.map(({ capture, sandboxId }) => (capture === true ? 'captured' : sandboxId));
  assert.equal(new Set(names).size, 3);
  assert.deepEqual([names[0], names[1], names[4]], ['captured', names[2], names[5]]);
  const [first, second] = [pool.take(KEY), pool.take(KEY)];
  assert.ok(first !== undefined && second !== undefined && first !== second);
  assert.notEqual(first.secret, second.secret);
  assert.equal(pool.take(KEY), undefined);
  assert.equal(pool.take({ ...KEY, memoryMb: 1024 }), undefined);
  await pass(10_000);
  assert.equal(vms().length, 6, 'two were taken, two stand for each of both shapes');
  await Promise.all([first, second].map(({ resources }) => resources.run()));
  await pool.close();
  assert.deepEqual([...host.vms.keys(), ...host.volumesOnDisk, ...host.slotsInUse], []);
});

test('a machine in which nothing of a user runs does what clients do first, before it stands still; others do not', async () => {
  const { pass, pool, used, vms } = setUp({ high: 1 });
  pool.want(KEY);
  await pass(3_000);
  assert.deepEqual([used, vms()], [[], ['paused']]);
  pool.want({ ...KEY, checkpoint: 'other', quiet: true });
  await pass(3_000);
  assert.deepEqual(
    [used, vms()],
    [
      [
        ['paused', 'running'],
        ['paused', 'running'],
      ],
      ['paused', 'paused'],
    ],
  );
  await pool.close();
});

test('idle templates give back what they hold, the last used keeps the low mark; close gives back all', async () => {
  const { host, pass, pool, forgotten, vms } = setUp();
  pool.want({ ...KEY, checkpoint: 'third' });
  pool.want({ ...KEY, checkpoint: 'other' });
  await pass(5_000);
  assert.equal(vms().length, 4);
  pool.want(KEY);
  await pass(5_000);
  assert.equal(vms().length, 4, 'the third one back has nothing any more');
  await pass(70_000);
  assert.deepEqual([vms().length, forgotten.length], [1, 5]);
  await pool.close();
  assert.deepEqual([vms(), [...host.volumesOnDisk], pool.take(KEY)], [[], [], undefined]);
});

test('one that cannot be made is tried again later; one that ends goes; without room or with a mark of 0 there is none', async () => {
  const { host, pass, pool, vms } = setUp({ low: 1, high: 1 });
  let fails = 0;
  host.hooks.set('init', () => {
    if (++fails === 1) throw new Error('as planned');
  });
  pool.want(KEY);
  await pass(10_000);
  assert.deepEqual([vms(), [...host.volumesOnDisk], fails], [[], [], 1]);
  await pass(30_000);
  assert.equal(vms().length, 1);
  [...host.vms.values()][0]?.die('as planned');
  await pass(5_000);
  assert.deepEqual([vms().length, host.volumesOnDisk.size], [1, 1]);
  await pool.close();
  for (const none of [setUp({ hasRoom: () => false }), setUp({ high: 0 })]) {
    none.pool.want(KEY);
    await none.pass(5_000);
    assert.deepEqual(none.vms(), []);
    await none.pool.close();
  }
});

test('one whose end cannot be read goes as well', async () => {
  let first = true;
  const { host, pass, pool, vms } = setUp({
    ...{ low: 1, high: 1 },
    async prepare(key, signal) {
      const standing = await prepareStanding(Object.assign(host, { useGuest: async () => {} }), key, signal);
      if (!first || standing === undefined) return standing;
      first = false;
      const exited = Promise.reject(new Error('its log cannot be read'));
      return { ...standing, vm: Object.create(standing.vm, { exited: { value: exited } }) };
    },
  });
  pool.want(KEY);
  await pass(5_000);
  assert.deepEqual([vms().length, host.volumesOnDisk.size], [1, 1]);
  assert.equal(host.reached.filter((point) => point === 'stop').length, 1);
  await pool.close();
});

/** A lifecycle whose template is captured, with one machine that stands ready. */
async function withWarm(
  change: Partial<WarmPoolOptions> = {},
): Promise<{ f: Fixture; host: FakeHost; pool: WarmPool }> {
  const { host, pass, pool } = setUp({ low: 1, high: 1, ...change });
  const launch = createLaunch({ ...parts(host), warm: pool });
  const f = await fixture({ launch, startPointOf: async () => ({ kind: 'checkpoint', id: 'base', event: 'create' }) });
  pool.want(KEY);
  await pass(2_000);
  host.reached.length = 0;
  return { f, host, pool };
}

const parts = (host: FakeHost) => ({
  ...{ slots: host.slots, volumes: host.volumes, bootVm: host.bootVm, restoreVm: host.restoreVm, boot: host.boot },
  ...{ connectEnvd: host.connectEnvd, checkpoints: host.checkpoints, startService: host.startService },
  ...{ vmParts: host.vmParts, restoreLimits: host.restoreLimits },
});

test('a create takes one that stands ready: it becomes who it is with its first question, and all of it goes with it', async () => {
  const { f, host, pool } = await withWarm();
  await using _f = f;
  const { sandboxId, envdAccessToken } = await f.sandboxes.create({ ...CREATE, envVars: { A: '1' } });
  assert.deepEqual(host.reached.filter((point) => point !== 'forget').slice(0, 2), ['resume', 'init']);
  const init = host.inits.at(-1);
  assert.deepEqual([init?.sandboxId, init?.accessToken, init?.envVars?.A], [sandboxId, envdAccessToken, '1']);
  const row = f.ledger.sandboxes.get(sandboxId);
  assert.deepEqual([row?.hostSecret, row?.volumeId], [init?.hostSecret, [...host.volumesOnDisk][0]]);
  await f.sandboxes.kill(sandboxId);
  assert.deepEqual([...host.vms.keys(), ...host.volumesOnDisk, ...host.slotsInUse], []);
  await pool.close();
});

test('where one that stood ready does not become a sandbox, the create starts another, and nothing of the first is left', async () => {
  const { f, host, pool } = await withWarm();
  await using _f = f;
  const [ready] = [...host.vms.keys()];
  let asked = 0;
  host.hooks.set('init', () => {
    if (++asked === 1) throw new Error('it does not answer');
  });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  assert.equal(asked, 2);
  const incarnation = f.ledger.sandboxes.get(sandboxId)?.incarnation;
  assert.notEqual(incarnation, ready);
  assert.deepEqual([[...host.vms.keys()], host.volumesOnDisk.size, host.slotsInUse.size], [[incarnation], 1, 1]);
  await f.sandboxes.kill(sandboxId);
  await pool.close();
  assert.deepEqual([...host.vms.keys(), ...host.volumesOnDisk, ...host.slotsInUse], []);
});

test('one that stood ready and is silent is given up long before a guest that has nobody in its place', async () => {
  const { f, host, pool } = await withWarm({ answerMs: 20 });
  await using _f = f;
  const [ready] = [...host.vms.keys()];
  const silent = Promise.withResolvers<never>();
  let asked = 0;
  // The limit of other guests is 5 s here.
  const patience = setTimeout(() => silent.reject(new Error('it was waited for')), 4_000);
  host.hooks.set('init', (signal) => {
    signal?.addEventListener('abort', () => silent.reject(signal.reason));
    if (++asked === 1) return silent.promise;
  });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  clearTimeout(patience);
  await assert.rejects(silent.promise, { name: 'TimeoutError' });
  assert.deepEqual([[...host.vms.keys()].includes(ready ?? ''), asked], [false, 2]);
  await f.sandboxes.kill(sandboxId);
  await pool.close();
});

test('a create that must not reach the internet, or whose machine has just ended, starts one of its own', async () => {
  const { f, host, pool } = await withWarm();
  await using _f = f;
  const shut = await f.sandboxes.create({ ...CREATE, allowInternetAccess: false });
  assert.ok(host.reached.includes('restore'));
  let resumes = 0;
  host.hooks.set('resume', () => {
    if (++resumes === 1) throw new Error('it has ended');
  });
  const other = await f.sandboxes.create(CREATE);
  assert.equal(host.reached.filter((point) => point === 'restore').length, 2);
  for (const { sandboxId } of [shut, other]) await f.sandboxes.kill(sandboxId);
  await pool.close();
  assert.deepEqual([...host.vms.keys(), ...host.volumesOnDisk, ...host.slotsInUse], []);
});
