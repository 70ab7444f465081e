import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { diskLayers } from '../templates/layers.ts';
import type { Point } from './testing/fake-host.ts';
import { CREATE, fixture, TEMPLATE } from './testing/fixture.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;

test('a create hands out id and token, tells envd who it is, and is logged once with its boot id', async () => {
  await using f = await fixture();
  const view = await f.sandboxes.create({ ...CREATE, envVars: { FROM: 'client' }, metadata: { a: 'b' } });
  assert.match(view.sandboxId, /^i[a-z0-9]{20}$/);
  assert.match(view.envdAccessToken ?? '', /^[0-9a-f]{64}$/);
  assert.equal(view.trafficAccessToken, undefined);
  assert.equal(view.state, 'running');
  assert.equal(view.alias, 'base');
  assert.equal(view.envdVersion, '0.6.13');
  assert.equal(view.endAt.getTime() - view.startedAt.getTime(), 60_000);
  assert.deepEqual(f.sandboxes.get(view.sandboxId), view);

  const init = f.host.inits[0];
  assert.deepEqual(init?.envVars, { FROM: 'client', KEEP: '1' });
  assert.equal(init?.accessToken, view.envdAccessToken);
  assert.equal(init?.defaultUser, 'user');
  assert.equal(init?.hostname, view.sandboxId);
  assert.equal(Buffer.from(init?.seed ?? '', 'base64').length, 32);

  const lines = f.lines.filter((line) => line.message === 'sandbox running');
  assert.equal(lines.length, 1);
  assert.equal(lines[0]?.fields.sandboxId, view.sandboxId);
  assert.equal(lines[0]?.fields.bootId, f.ledger.sandboxes.get(view.sandboxId)?.bootId);
  assert.deepEqual(Object.keys(lines[0]?.fields.ms as object).sort(), [
    'guest',
    'queue',
    'settle',
    'settle.kernel',
    'slot',
    'total',
    'vm',
    'volume',
  ]);
  assert.deepEqual(f.spawns, [view.templateId]);
  const text = JSON.stringify(f.lines);
  assert.ok(!text.includes(view.envdAccessToken ?? 'x') && !text.includes(init?.seed ?? 'x'));
});

test('an open sandbox has no token, a private one has a traffic token, and routes carry what the proxy needs', async () => {
  await using f = await fixture();
  const open = await f.sandboxes.create({ ...CREATE, secure: false });
  assert.equal(open.envdAccessToken, undefined);
  assert.equal(f.host.inits[0]?.accessToken, null);
  const network = { allowPublicTraffic: false, httpsPorts: [8443], maskRequestHost: 'localhost:5173' };
  const closed = await f.sandboxes.create({ ...CREATE, network });
  assert.match(closed.trafficAccessToken ?? '', /^[0-9a-f]{64}$/);
  const route = f.sandboxes.routes.lookup(closed.sandboxId);
  assert.ok(route.kind === 'running');
  assert.equal(route.target.trafficAccessToken, closed.trafficAccessToken);
  assert.equal(route.target.maskRequestHost, network.maskRequestHost);
  assert.deepEqual(route.target.httpsPorts, [8443]);
  assert.equal(route.target.address, '10.200.0.1');
  assert.notEqual(route.target.hostSecret, closed.trafficAccessToken);
});

test('a template with a start command counts as running when its guest is ready, and not when it never is', async () => {
  const start = {
    ...{ envVars: {}, user: 'user', workdir: '/w', startCommand: { cmd: 'serve', user: 'root' } },
    ready: { kind: 'http', port: 49999, path: '/health' },
  } as const;
  const template = { ...TEMPLATE, start };
  await using f = await fixture({
    templates: { resolve: () => template, recordSpawn: () => {} },
  });
  const view = await f.sandboxes.create(CREATE);
  const { startCommand, ready } = start;
  assert.deepEqual(f.host.services, [{ startCommand, ready, workdir: '/w', accessToken: view.envdAccessToken }]);
  assert.ok(f.host.reached.indexOf('service') > f.host.reached.indexOf('init'));
  f.host.hooks.set('service', () => {
    throw new AenvError('start_command_failed', 'exit status 1');
  });
  await assert.rejects(f.sandboxes.create(CREATE), hasCode('start_command_failed'));
  await f.sandboxes.kill(view.sandboxId);
  assert.deepEqual(f.host.inventory(), []);
});

for (const point of ['acquire', 'create', 'attach', 'boot', 'health', 'init'] satisfies Point[]) {
  test(`a failure at '${point}' leaves nothing, and the row keeps what went wrong`, async () => {
    await using f = await fixture();
    f.host.hooks.set(point, () => {
      throw new AenvError('boot_failed', `broken at ${point}`);
    });
    await assert.rejects(f.sandboxes.create(CREATE), hasCode('boot_failed'));
    assert.deepEqual(f.host.inventory(), []);
    assert.deepEqual(f.ledger.sandboxes.live(), []);
    assert.equal(f.sandboxes.routes.all().length, 0);
    f.host.hooks.clear();
    const view = await f.sandboxes.create(CREATE);
    assert.equal(view.state, 'running');
  });
}

test('the row of a failed create says create_failed with the message, and the id is not found with it', async () => {
  await using f = await fixture();
  let id = '';
  f.host.hooks.set('boot', () => {
    id = f.sandboxes.routes.all()[0]?.id ?? '';
    throw new AenvError('boot_failed', 'kernel panic');
  });
  await assert.rejects(f.sandboxes.create(CREATE), /kernel panic/);
  const row = f.ledger.sandboxes.get(id);
  assert.equal(row?.state, 'ended');
  assert.equal(row?.endReason, 'create_failed');
  assert.equal(row?.endMessage, 'kernel panic');
  assert.throws(() => f.sandboxes.get(id), /could not be started/);
});

test('an error of no kind of ours comes out as internal, a full disk as no_space', async () => {
  await using f = await fixture();
  f.host.hooks.set('boot', () => {
    throw new TypeError('x is not a function');
  });
  await assert.rejects(f.sandboxes.create(CREATE), hasCode('internal'));
  f.host.hooks.set('create', () => {
    throw Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });
  });
  await assert.rejects(f.sandboxes.create(CREATE), hasCode('no_space'));
  assert.deepEqual(f.host.inventory(), []);
});

test('when one of slot and volume fails the other one is waited for and given back', async () => {
  await using f = await fixture();
  const { promise, resolve } = Promise.withResolvers<void>();
  f.host.hooks.set('acquire', () => {
    throw new AenvError('network_exhausted', 'no slot');
  });
  f.host.hooks.set('create', () => promise);
  const creating = f.sandboxes.create(CREATE);
  setTimeout(resolve, 20);
  await assert.rejects(creating, hasCode('network_exhausted'));
  assert.ok(f.host.reached.includes('remove'));
  assert.deepEqual(f.host.inventory(), []);
});

test('the limit of sandboxes holds also for creates at the same time', async () => {
  const limits = { maxSandboxes: 3, memoryShare: 0, maxConcurrentStarts: 1, maxQueuedStarts: 64 };
  await using f = await fixture({ limits });
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => f.sandboxes.create(CREATE)));
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 3);
  for (const result of results) {
    if (result.status === 'rejected') assert.ok(hasCode('capacity_exhausted')(result.reason));
  }
  assert.equal(f.host.slotsInUse.size, 3);
});

test('starts beyond the gate wait, and beyond the queue are refused and leave a final row', async () => {
  const limits = { maxSandboxes: 100, memoryShare: 0, maxConcurrentStarts: 2, maxQueuedStarts: 1 };
  await using f = await fixture({ limits });
  let booting = 0;
  f.host.hooks.set('boot', async () => {
    booting++;
    assert.ok(booting <= 2);
    await new Promise((resolve) => setTimeout(resolve, 10));
    booting--;
  });
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => f.sandboxes.create(CREATE)));
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'],
  );
  assert.equal(f.ledger.sandboxes.live().length, 3);
});

test('a host without free memory refuses, and counts guests that are still booting', async () => {
  await using f = await fixture({ readAvailableMemory: () => 300 });
  const results = await Promise.allSettled([f.sandboxes.create(CREATE), f.sandboxes.create(CREATE)]);
  assert.equal(results[0]?.status, 'fulfilled');
  assert.ok(results[1]?.status === 'rejected' && hasCode('capacity_exhausted')(results[1].reason));
  await f.sandboxes.create(CREATE);
});

test('a cold sandbox boots the disk of its template, and no machine of it is made', async () => {
  let asked = 0;
  await using f = await fixture({
    startPointOf: async ({ source }) => {
      asked++;
      return { kind: 'disk', disk: { kind: 'layers', layers: diskLayers(source) } };
    },
  });
  assert.equal((await f.sandboxes.create({ ...CREATE, cold: true })).state, 'running');
  assert.equal(asked, 0);
  await f.sandboxes.create(CREATE);
  assert.equal(asked, 1);
});
