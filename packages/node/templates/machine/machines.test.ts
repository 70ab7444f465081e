import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { unguarded } from '../../assets/testing/unguarded.ts';
import { type LogLine, recordingLogger } from '../../sandboxes/testing/fixture.ts';
import { ManualClock } from '../../sandboxes/testing/manual-clock.ts';
import { fullTemplate } from '../../store/testing/records.ts';
import type { BuildMachine } from './build.ts';
import { Machines } from './machines.ts';

async function setUp(t: TestContext, build: BuildMachine) {
  const folder = await mkdtemp(join(tmpdir(), 'machines-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const adopted: string[] = [];
  const clock = new ManualClock();
  const open = (platform = 'this host', log = silentLogger) =>
    new Machines({
      ...{ folder, build, platform, log, signal: new AbortController().signal },
      ...{ clock, uses: unguarded },
      repository: {
        adopt: async (_root, id) => void adopted.push(id),
        list: async () => adopted.map((id) => ({ id, kind: 'template' })),
        remove: async (id) => void adopted.splice(adopted.indexOf(id), 1),
      },
    });
  return { folder, adopted, open, clock };
}

test('a machine is made once for each state of template and platform, and taken over by every node', async (t) => {
  const built: string[] = [];
  const { adopted, open } = await setUp(t, async (_template, id, { folder, target }) => {
    assert.notEqual(folder, target);
    built.push(id);
    await writeFile(join(folder, 'disk.layer'), 'disk');
  });
  const template = fullTemplate();
  const first = open();
  const [a, b] = await Promise.all([first.of(template), first.of(template)]);
  assert.deepEqual(a, b);
  assert.deepEqual(await open().of(template), a);
  assert.deepEqual([built.length, adopted.length], [1, 2]);
  await open().of(fullTemplate({ memoryMb: 1024 }));
  await open('another kernel').of(template);
  assert.equal(new Set(built).size, 3);
});

test('a template that cannot be captured has no machine and leaves nothing, and the next node tries again', async (t) => {
  let tries = 0;
  const { folder, adopted, open } = await setUp(t, async () => {
    tries++;
    throw new Error('as planned');
  });
  const machines = open();
  assert.equal(await machines.of(fullTemplate()), undefined);
  assert.equal(await machines.of(fullTemplate()), undefined);
  assert.equal(tries, 1);
  const next = open();
  assert.equal(await next.of(fullTemplate()), undefined);
  await Promise.all([machines, next].map((each) => each.close()));
  assert.equal(tries, 2);
  assert.deepEqual([adopted, await readdir(folder)], [[], []]);
});

/** Moves time on, second by second, and lets what it set going come to its end. */
async function pass(clock: ManualClock, seconds: number, each = () => {}): Promise<void> {
  for (let gone = 0; gone < seconds; gone++) {
    each();
    await clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function until(is: () => boolean): Promise<void> {
  for (const end = Date.now() + 10_000; !is(); await delay(1)) assert.ok(Date.now() < end, 'it did not come true');
  // What was told of goes on to its next wait.
  await new Promise((resolve) => setImmediate(resolve));
}

/** Machines of which those with 512 MiB are not made before `building.fails` is false, and then when `building.ends`. */
async function setUpFailing(t: TestContext) {
  const building = { fails: true, ends: Promise.withResolvers<void>() };
  const lines: LogLine[] = [];
  const host = await setUp(t, async ({ memoryMb }) => {
    if (memoryMb === 512 && building.fails) throw new AenvError('no_space', 'as planned');
    if (memoryMb === 512) await building.ends.promise;
  });
  const machines = host.open('this host', recordingLogger(lines));
  t.after(() => machines.close());
  const failures = () => lines.filter(({ level }) => level === 'warn').length;
  return { ...host, machines, building, failures };
}

test('what could not be made is tried again, later each time, when it is quiet, and nobody waits for it', async (t) => {
  const { machines, building, failures, clock } = await setUpFailing(t);
  const [wanted, other] = [fullTemplate({ memoryMb: 512 }), fullTemplate({ memoryMb: 1024 })];
  assert.equal(await machines.of(wanted), undefined);
  await pass(clock, 59);
  assert.equal(failures(), 1);
  await pass(clock, 1);
  await until(() => failures() === 2);
  // While somebody starts a sandbox each second it is put off for as long again.
  await machines.of(other);
  await pass(clock, 235, () => void machines.of(other));
  assert.equal(failures(), 2);
  await pass(clock, 10, () => void machines.of(other));
  await until(() => failures() === 3);
  building.fails = false;
  await pass(clock, 245);
  assert.equal(await machines.of(wanted), undefined, 'it is being made');
  building.ends.resolve();
  for (const end = Date.now() + 10_000; (await machines.of(wanted)) === undefined; await delay(1)) {
    assert.ok(Date.now() < end, 'it was not made');
  }
  assert.equal(await machines.of(wanted), machines.idOf(wanted));
  assert.equal(failures(), 3);
});

test('what is not wanted any more is not tried again', async (t) => {
  const { machines, building, failures, clock, adopted } = await setUpFailing(t);
  const wanted = fullTemplate({ memoryMb: 512 });
  assert.equal(await machines.of(wanted), undefined);
  assert.equal(await machines.keepOnly([], clock.now() + 1), 0);
  await pass(clock, 300);
  assert.equal(failures(), 1);
  // Whoever asks again is the first one.
  building.fails = false;
  building.ends.resolve();
  assert.equal(await machines.of(wanted), machines.idOf(wanted));
  assert.deepEqual(adopted, [machines.idOf(wanted)]);
});

test('what nobody has asked for in a day is left to the next who does', async (t) => {
  const { machines, building, failures, clock } = await setUpFailing(t);
  const wanted = fullTemplate({ memoryMb: 512 });
  assert.equal(await machines.of(wanted), undefined);
  for (let hour = 0; hour < 30; hour++) {
    await clock.advance(3_600_000, 60_000);
    await delay(5);
  }
  const tries = failures();
  assert.ok(tries > 10 && tries < 30, `${tries}`);
  building.fails = false;
  building.ends.resolve();
  assert.equal(await machines.of(wanted), machines.idOf(wanted));
});

test('machines of templates that are no more go, but not from under who has just asked for one', async (t) => {
  const { adopted, open, clock } = await setUp(t, async () => {});
  const machines = open();
  const [kept, old] = [fullTemplate(), fullTemplate({ memoryMb: 1024 })];
  const asked = clock.now();
  await Promise.all([machines.of(kept), machines.of(old)]);
  assert.equal(await machines.keepOnly([kept], asked), 0);
  assert.equal(await machines.keepOnly([kept], asked + 1), 1);
  assert.deepEqual(adopted, [await machines.of(kept)]);
  // It is taken over again when there is such a template again.
  assert.equal(await machines.of(old), machines.idOf(old));
  assert.equal(adopted.length, 2);
});
