import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { CREATE, type Fixture, fixture, TEMPLATE } from '../testing/fixture.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;
const stateOf = (f: Fixture, id: string) => f.ledger.sandboxes.get(id)?.state;

test('a paused sandbox holds nothing but its checkpoint, and comes back as the one that it was', async () => {
  await using f = await fixture();
  const view = await f.sandboxes.create({ ...CREATE, network: { ...CREATE.network, allowPublicTraffic: false } });
  const { sandboxId } = view;
  const before = f.ledger.sandboxes.get(sandboxId);
  await f.sandboxes.pause(sandboxId, { memory: true });
  assert.deepEqual(f.host.inventory(), ['checkpoint']);
  assert.equal(f.sandboxes.get(sandboxId).state, 'paused');
  assert.deepEqual(f.sandboxes.routes.lookup(sandboxId), { kind: 'unavailable', state: 'paused' });
  const row = f.ledger.sandboxes.get(sandboxId);
  assert.deepEqual([row?.slotIndex, row?.volumeId, row?.vm], [undefined, undefined, undefined]);

  await f.clock.advance(3_600_000);
  assert.equal(stateOf(f, sandboxId), 'paused');
  const { resumed, view: after } = await f.sandboxes.connect(sandboxId, 90);
  assert.equal(resumed, true);
  assert.deepEqual(
    [after.envdAccessToken, after.trafficAccessToken, after.startedAt, after.state],
    [view.envdAccessToken, view.trafficAccessToken, view.startedAt, 'running'],
  );
  assert.equal(after.endAt.getTime(), f.clock.now() + 90_000);
  const resumedRow = f.ledger.sandboxes.get(sandboxId);
  assert.equal(resumedRow?.bootId, before?.bootId);
  assert.notEqual(resumedRow?.incarnation, before?.incarnation);
  assert.equal(resumedRow?.checkpoint, undefined);
  assert.equal(f.host.opened.size, 0, 'the files of the pause take no space any longer');
  assert.equal(Buffer.from(f.host.inits.at(-1)?.seed ?? '', 'base64').length, 32);
  assert.deepEqual(f.host.inventory().sort(), ['slot 0', `vm ${resumedRow?.incarnation}`, `volume ${sandboxId}`]);
});

test('what a state does not allow is refused by name', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  await assert.rejects(f.sandboxes.resume(sandboxId, 60), hasCode('sandbox_not_paused'));
  await f.sandboxes.pause(sandboxId, { memory: true });
  await assert.rejects(f.sandboxes.pause(sandboxId, { memory: true }), hasCode('sandbox_paused'));
  await assert.rejects(f.sandboxes.setTimeout(sandboxId, 60), hasCode('sandbox_not_running'));
  await f.sandboxes.kill(sandboxId);
  assert.deepEqual(f.host.inventory(), []);
  await assert.rejects(f.sandboxes.resume(sandboxId, 60), hasCode('sandbox_not_found'));
});

test('pause, connect and kill at the same time take turns, and each gets its answer', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const [paused, again, connected, killed] = await Promise.allSettled([
    f.sandboxes.pause(sandboxId, { memory: true }),
    f.sandboxes.pause(sandboxId, { memory: true }),
    f.sandboxes.connect(sandboxId, 60),
    f.sandboxes.kill(sandboxId),
  ]);
  assert.equal(paused.status, 'fulfilled');
  assert.ok(again.status === 'rejected' && hasCode('sandbox_paused')(again.reason));
  assert.ok(connected.status === 'fulfilled' && connected.value.resumed);
  assert.equal(killed.status, 'fulfilled');
  assert.deepEqual(f.host.inventory(), []);
  assert.equal(stateOf(f, sandboxId), 'ended');
});

test('a sandbox whose capture fails runs on, reachable as before', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  const ended: string[] = [];
  f.sandboxes.routes.onEnd((incarnation) => ended.push(incarnation));
  for (const rounds of [1, 2]) {
    await assert.rejects(f.sandboxes.pause(sandboxId, { memory: true }), hasCode('no_space'));
    assert.equal(stateOf(f, sandboxId), 'running');
    const route = f.sandboxes.routes.lookup(sandboxId);
    assert.equal(ended.length, rounds);
    assert.ok(route.kind === 'running' && !ended.includes(route.target.incarnation), 'the proxy serves it again');
  }
  assert.equal([...f.host.vms.values()][0]?.state, 'running');
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.checkpoint, undefined);
  f.host.hooks.clear();
  await f.sandboxes.pause(sandboxId, { memory: true });
  assert.equal(stateOf(f, sandboxId), 'paused');
});

test('a pause that failed gives the sandbox back also when that cannot be written down yet', async (t) => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  const { sandboxes: rows } = f.ledger;
  const update = rows.update.bind(rows);
  const full = t.mock.method(rows, 'update', (...[id, from, change]: Parameters<typeof update>) => {
    if (change.state === 'running') throw new AenvError('ledger_failed', 'the disk is full');
    return update(id, from, change);
  });
  await assert.rejects(f.sandboxes.pause(sandboxId, { memory: true }), hasCode('no_space'));
  assert.equal(f.sandboxes.routes.lookup(sandboxId).kind, 'running');
  await f.clock.advance(2_000);
  assert.equal(stateOf(f, sandboxId), 'pausing');
  full.mock.restore();
  await f.clock.advance(2_000);
  assert.equal(stateOf(f, sandboxId), 'running');
  await f.sandboxes.setTimeout(sandboxId, 60);
  f.host.hooks.clear();
  await f.sandboxes.pause(sandboxId, { memory: true });
  assert.equal(stateOf(f, sandboxId), 'paused');
});

test('a sandbox is paused once its row says so, also when what it no longer holds cannot be written down', async (t) => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const { sandboxes: rows } = f.ledger;
  const update = rows.update.bind(rows);
  t.mock.method(rows, 'update', (...[id, from, change]: Parameters<typeof update>) => {
    if (change.slotIndex === null) throw new AenvError('no_space', 'the disk is full');
    return update(id, from, change);
  });
  await f.sandboxes.pause(sandboxId, { memory: true });
  assert.deepEqual([stateOf(f, sandboxId), f.host.inventory()], ['paused', ['checkpoint']]);
  assert.equal((await f.sandboxes.connect(sandboxId, 60)).resumed, true);
});

test('a VM that dies while it is captured is lost, with nothing left', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', async () => {
    [...f.host.vms.values()][0]?.die('killed');
    await new Promise((resolve) => setImmediate(resolve));
  });
  await assert.rejects(f.sandboxes.pause(sandboxId, { memory: true }), hasCode('vm_died'));
  await f.sandboxes.routes.get(sandboxId)?.gone;
  assert.equal(stateOf(f, sandboxId), 'lost');
  assert.deepEqual(f.host.inventory(), []);
});

for (const memory of [true, false]) {
  test(`a VM that dies when all of it is captured is paused, ${memory ? 'with' : 'without'} its memory`, async () => {
    await using f = await fixture();
    const { sandboxId } = await f.sandboxes.create(CREATE);
    f.host.hooks.set('captured', async () => {
      [...f.host.vms.values()][0]?.die('killed');
      await new Promise((resolve) => setImmediate(resolve));
    });
    await f.sandboxes.pause(sandboxId, { memory });
    assert.equal(stateOf(f, sandboxId), 'paused');
    assert.deepEqual(f.host.inventory(), ['checkpoint']);
    f.host.hooks.clear();
    assert.equal((await f.sandboxes.connect(sandboxId, 60)).resumed, true);
  });
}

test('a VM that dies while its failed pause is taken back is lost, and says how', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  f.host.hooks.set('resume', () => [...f.host.vms.values()][0]?.die('out of memory'));
  await assert.rejects(f.sandboxes.pause(sandboxId, { memory: true }), hasCode('no_space'));
  await f.sandboxes.routes.get(sandboxId)?.gone;
  assert.match(f.ledger.sandboxes.get(sandboxId)?.endMessage ?? '', /ended with exit code 1: out of memory/);
  assert.deepEqual(f.host.inventory(), []);
});

test('a pause that is refused disturbs nobody: its streams stay, and its VM never stands still', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const { incarnation } = f.ledger.sandboxes.get(sandboxId) ?? {};
  const route = f.sandboxes.routes.lookup(sandboxId);
  f.host.hooks.set('admit', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  for (const memory of [true, false]) {
    await assert.rejects(f.sandboxes.pause(sandboxId, { memory }), hasCode('no_space'));
  }
  const now = f.sandboxes.routes.lookup(sandboxId);
  assert.ok(route.kind === 'running' && now.kind === 'running' && now.target === route.target);
  assert.ok(!f.host.reached.includes('capture') && !f.host.reached.includes('sync'));
  assert.deepEqual([stateOf(f, sandboxId), f.ledger.sandboxes.get(sandboxId)?.incarnation], ['running', incarnation]);
});

for (const point of ['acquire', 'create', 'attach', 'restore', 'resume', 'init'] as const) {
  test(`a resume that fails at '${point}' leaves the sandbox paused, and the next one works`, async () => {
    await using f = await fixture();
    const { sandboxId } = await f.sandboxes.create(CREATE);
    await f.sandboxes.pause(sandboxId, { memory: true });
    f.host.hooks.set(point, () => {
      throw new AenvError('restore_failed', 'as planned');
    });
    await assert.rejects(f.sandboxes.connect(sandboxId, 60), hasCode('restore_failed'));
    assert.equal(stateOf(f, sandboxId), 'paused');
    assert.deepEqual([f.host.inventory(), f.host.opened.size], [['checkpoint'], 0]);
    f.host.hooks.clear();
    assert.equal((await f.sandboxes.connect(sandboxId, 60)).resumed, true);
  });
}

test('a kill breaks a resume off', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  await f.sandboxes.pause(sandboxId, { memory: true });
  const held = Promise.withResolvers<void>();
  f.host.hooks.set('restore', () => held.promise);
  const resuming = f.sandboxes.connect(sandboxId, 60);
  resuming.catch(() => {});
  while (f.host.reached.at(-1) !== 'restore') await new Promise((resolve) => setImmediate(resolve));
  const killing = f.sandboxes.kill(sandboxId);
  held.resolve();
  await killing;
  await assert.rejects(resuming, hasCode('sandbox_not_running'));
  assert.deepEqual(f.host.inventory(), []);
  assert.equal(stateOf(f, sandboxId), 'ended');
});

test('a kill that comes while a failed resume is taken back is done then, and both callers are answered', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  await f.sandboxes.pause(sandboxId, { memory: true });
  f.host.hooks.set('init', () => {
    throw new AenvError('restore_failed', 'as planned');
  });
  let killing: Promise<void> | undefined;
  f.host.hooks.set('release', () => {
    killing ??= f.sandboxes.kill(sandboxId);
  });
  await assert.rejects(f.sandboxes.connect(sandboxId, 60), hasCode('restore_failed'));
  await killing;
  assert.ok(killing !== undefined);
  assert.deepEqual([f.host.inventory(), stateOf(f, sandboxId)], [[], 'ended']);
});

test('the end of its time pauses a sandbox that asked for it, and traffic wakes it where that was asked for', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, onTimeout: 'pause', autoResume: true });
  await f.clock.advance(61_000);
  await f.sandboxes.routes.get(sandboxId)?.exclusive(async () => {});
  assert.equal(stateOf(f, sandboxId), 'paused');
  const route = f.sandboxes.routes.lookup(sandboxId);
  assert.ok(route.kind === 'unavailable' && route.wake !== undefined);
  await Promise.all([route.wake(), route.wake()]);
  assert.equal(f.sandboxes.routes.lookup(sandboxId).kind, 'running');
  assert.equal(f.host.reached.filter((point) => point === 'restore').length, 1);
  // However often, and however long it slept: it gets the time that it was made with.
  for (const [seconds, least] of [
    [90, 90],
    [5, 60],
  ] as const) {
    const { sandboxId: id } = await f.sandboxes.create({ ...CREATE, timeoutSeconds: seconds, autoResume: true });
    for (let round = 0; round < 2; round++) {
      await f.sandboxes.pause(id, { memory: true });
      await f.clock.advance(600_000);
      const asleep = f.sandboxes.routes.lookup(id);
      assert.ok(asleep.kind === 'unavailable' && asleep.wake !== undefined);
      await asleep.wake();
      assert.equal(f.sandboxes.get(id).endAt.getTime() - f.clock.now(), least * 1000);
    }
  }
});

test('a resume may say what the next end does', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, onTimeout: 'pause' });
  await f.sandboxes.pause(sandboxId, { memory: true });
  assert.equal((await f.sandboxes.resume(sandboxId, 60, { memory: true })).onTimeout, 'pause');
  await f.sandboxes.pause(sandboxId, { memory: true });
  assert.equal((await f.sandboxes.resume(sandboxId, 60, { memory: true, onTimeout: 'kill' })).onTimeout, 'kill');
  const live = f.sandboxes.routes.get(sandboxId);
  await f.clock.advance(120_000);
  await live?.gone;
  assert.equal(stateOf(f, sandboxId), 'ended');
});

test('paused sandboxes outlive the daemon and are taken up again', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  await f.sandboxes.pause(sandboxId, { memory: true });
  await f.sandboxes.close();
  assert.equal(stateOf(f, sandboxId), 'paused');
  const next = f.restart();
  next.takeUpPaused();
  assert.deepEqual(
    next.list({ states: ['paused'], order: 'asc', limit: 10 }).items.map((item) => item.sandboxId),
    [sandboxId],
  );
  assert.equal((await next.connect(sandboxId, 60)).resumed, true);
  await next.kill(sandboxId);
  await next.close();
});

test('a pause without memory keeps the disk as the guest has written it; the next start boots it as the same sandbox', async () => {
  const start = { ...TEMPLATE.start, startCommand: { cmd: 'serve', user: 'user' } };
  const templates = { list: () => [], resolve: () => ({ ...TEMPLATE, start }), recordSpawn() {} };
  await using f = await fixture({ templates });
  const view = await f.sandboxes.create({ ...CREATE, autoResume: true, onTimeout: 'pause', envVars: { MINE: 'x' } });
  const { sandboxId } = view;
  const before = f.ledger.sandboxes.get(sandboxId);
  await f.sandboxes.pause(sandboxId, { memory: false });
  const order = f.host.reached.filter((point) => point === 'sync' || point === 'capture' || point === 'stop');
  assert.deepEqual(order, ['sync', 'capture', 'stop']);
  assert.deepEqual(f.host.inventory(), ['checkpoint']);
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.checkpoint?.memory, false);
  assert.deepEqual(f.sandboxes.routes.lookup(sandboxId), { kind: 'unavailable', state: 'paused' });
  f.host.hooks.set('boot', () => {
    throw new AenvError('boot_failed', 'as planned');
  });
  await assert.rejects(f.sandboxes.connect(sandboxId, 60), hasCode('boot_failed'));
  assert.deepEqual(f.host.inventory(), ['checkpoint']);
  f.host.hooks.clear();

  const { view: after, resumed } = await f.sandboxes.connect(sandboxId, 60);
  assert.deepEqual([resumed, after.envdAccessToken, after.startedAt], [true, view.envdAccessToken, view.startedAt]);
  const row = f.ledger.sandboxes.get(sandboxId);
  assert.notEqual(row?.bootId, before?.bootId);
  assert.equal(row?.checkpoint, undefined);
  const { seed: _seed, ...init } = f.host.inits.at(-1) ?? {};
  assert.deepEqual(init, {
    envVars: { FROM: 'template', KEEP: '1', MINE: 'x' },
    ...{ accessToken: view.envdAccessToken, defaultUser: 'user', defaultWorkdir: '/home/user' },
    ...{ sandboxId, templateId: TEMPLATE.templateId, hostname: sandboxId },
  });
  assert.equal(f.host.services.length, 2);
  assert.equal(f.host.reached.filter((point) => point === 'boot').length, 3);

  // Memory that was kept may be left aside, too, and is asked for when nothing is said.
  await f.sandboxes.pause(sandboxId, { memory: true });
  await f.sandboxes.connect(sandboxId, 60, { memory: false });
  assert.notEqual(f.ledger.sandboxes.get(sandboxId)?.bootId, row?.bootId);
  assert.ok(!f.host.reached.includes('restore'));
  assert.deepEqual(f.host.checkpointsOnDisk.size, 0);
});

test('the end of its time keeps what was asked for; a guest that cannot write its files runs on', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, onTimeout: 'pause', pauseMemory: false });
  f.host.hooks.set('sync', () => {
    throw new AenvError('capture_failed', 'the guest does not answer');
  });
  await assert.rejects(f.sandboxes.pause(sandboxId, { memory: false }), hasCode('capture_failed'));
  assert.equal(f.sandboxes.routes.lookup(sandboxId).kind, 'running');
  f.host.hooks.clear();
  await f.clock.advance(61_000);
  await f.sandboxes.routes.get(sandboxId)?.exclusive(async () => {});
  assert.equal(stateOf(f, sandboxId), 'paused');
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.checkpoint?.memory, false);
});
