import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { unguarded } from '../../assets/testing/unguarded.ts';
import { ManualClock } from '../../sandboxes/testing/manual-clock.ts';
import { fullTemplate } from '../../store/testing/records.ts';
import type { BuildMachine } from './build.ts';
import { Machines } from './machines.ts';

async function setUp(t: TestContext, build: BuildMachine) {
  const folder = await mkdtemp(join(tmpdir(), 'machines-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const adopted: string[] = [];
  const clock = new ManualClock();
  const open = (platform = 'this host') =>
    new Machines({
      ...{ folder, build, platform, log: silentLogger, signal: new AbortController().signal },
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
  assert.equal(await open().of(fullTemplate()), undefined);
  assert.equal(tries, 2);
  assert.deepEqual([adopted, await readdir(folder)], [[], []]);
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
