import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Fork } from '../contract.ts';
import { CREATE, type Fixture, fixture } from '../testing/fixture.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;
const views = (forks: readonly Fork[]) => forks.flatMap((fork) => ('view' in fork ? [fork.view] : []));
const errors = (forks: readonly Fork[]) => forks.flatMap((fork) => ('error' in fork ? [fork.error.code] : []));
const vmStates = (f: Fixture) => [...f.host.vms.values()].map(({ state }) => state);

test('children are sandboxes of their own that go on from the source, which goes on as well', async () => {
  await using f = await fixture();
  const source = await f.sandboxes.create({
    ...CREATE,
    envVars: { A: '1' },
    metadata: { m: 'x' },
    network: { ...CREATE.network, allowPublicTraffic: false },
  });
  const forks = await f.sandboxes.fork(source.sandboxId, { count: 3, timeoutSeconds: 120 });
  const children = views(forks);
  assert.equal(children.length, 3);
  const rows = [source, ...children].map(({ sandboxId }) => f.ledger.sandboxes.get(sandboxId));
  for (const secret of ['sandboxId', 'envdAccessToken', 'trafficAccessToken', 'hostSecret', 'incarnation'] as const) {
    const values = rows.map((row) => row?.[secret]);
    assert.ok(!values.includes(undefined), secret);
    assert.equal(new Set(values).size, 4, secret);
  }
  for (const [at, child] of children.entries()) {
    assert.deepEqual([child.state, child.metadata, child.templateId], ['running', { m: 'x' }, source.templateId]);
    assert.equal(child.endAt.getTime(), f.clock.now() + 120_000);
    assert.deepEqual(rows[at + 1]?.envVars, { A: '1' });
    const init = f.host.inits.find(({ sandboxId }) => sandboxId === child.sandboxId);
    assert.deepEqual([init?.hostname, init?.accessToken], [child.sandboxId, child.envdAccessToken]);
    assert.equal(init?.envVars, undefined, 'they are in the memory');
    assert.equal(init?.hostSecret, rows[at + 1]?.hostSecret);
  }
  assert.equal(new Set(f.host.inits.map(({ seed }) => seed)).size, 4);
  assert.equal(f.sandboxes.get(source.sandboxId).endAt.getTime(), source.endAt.getTime());
  assert.deepEqual(vmStates(f), ['running', 'running', 'running', 'running']);
  assert.equal(f.host.checkpointsOnDisk.size, 0);
});

test('a child that fails is told in its place, leaves nothing, and disturbs nobody', async () => {
  await using f = await fixture({
    limits: { maxSandboxes: 1000, memoryShare: 0.5, maxConcurrentStarts: 1, maxQueuedStarts: 64 },
  });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  let restores = 0;
  f.host.hooks.set('restore', () => {
    if (++restores === 2) throw new AenvError('restore_failed', 'as planned');
  });
  const forks = await f.sandboxes.fork(sandboxId, { count: 3, timeoutSeconds: 60 });
  assert.deepEqual(
    forks.map((fork) => ('view' in fork ? fork.view.state : fork.error.code)),
    ['running', 'restore_failed', 'running'],
  );
  assert.equal(f.host.slotsInUse.size, 3);
  assert.equal(f.host.volumesOnDisk.size, 3);
  assert.equal(f.host.checkpointsOnDisk.size, 0);
});

test('more children than may wait for their start get their turn, up to the limit of the node', async () => {
  await using f = await fixture({
    limits: { maxSandboxes: 8, memoryShare: 0.5, maxConcurrentStarts: 2, maxQueuedStarts: 1 },
  });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const forks = await f.sandboxes.fork(sandboxId, { count: 10, timeoutSeconds: 60 });
  assert.equal(views(forks).length, 7);
  assert.deepEqual(errors(forks), ['capacity_exhausted', 'capacity_exhausted', 'capacity_exhausted']);
});

test('a fork for which the node has no room at all is refused before the source is touched', async () => {
  await using f = await fixture({
    limits: { maxSandboxes: 1, memoryShare: 0.5, maxConcurrentStarts: 4, maxQueuedStarts: 64 },
  });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const fork = f.sandboxes.fork(sandboxId, { count: 2, timeoutSeconds: 60 });
  await assert.rejects(fork, hasCode('capacity_exhausted'));
  assert.ok(!f.host.reached.includes('capture'));
});

test('a fork for which there is no memory or no disk left is refused before anything is half made, with what to do', async () => {
  let availableMb = 1_000_000;
  await using f = await fixture({
    limits: { maxSandboxes: 9, memoryShare: 0.5, maxConcurrentStarts: 4, maxQueuedStarts: 64 },
    readAvailableMemory: () => availableMb,
  });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const held = f.host.inventory();
  const fork = () => f.sandboxes.fork(sandboxId, { count: 2, timeoutSeconds: 60 });
  const remedy = (code: string, message: RegExp) => (error: unknown) => {
    assert.ok(error instanceof AenvError && error.code === code, String(error));
    assert.match(error.message, message);
    assert.ok(error.remediation.length > 20);
    return true;
  };
  availableMb = 100;
  await assert.rejects(fork(), remedy('capacity_exhausted', /memory/));
  availableMb = 1_000_000;
  f.host.hooks.set('admit', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  await assert.rejects(fork(), remedy('no_space', /disk is full/));
  assert.ok(!f.host.reached.includes('capture') && !f.host.released.length);
  assert.deepEqual(f.host.inventory(), held);
  assert.deepEqual(
    f.ledger.sandboxes.live().map((row) => row.sandboxId),
    [sandboxId],
  );
});

test('a source whose capture fails runs on, and no child is made', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  await assert.rejects(f.sandboxes.fork(sandboxId, { count: 2, timeoutSeconds: 60 }), hasCode('no_space'));
  assert.deepEqual(vmStates(f), ['running']);
  assert.equal(f.sandboxes.routes.lookup(sandboxId).kind, 'running');
  f.host.hooks.clear();
  assert.equal(views(await f.sandboxes.fork(sandboxId, { count: 1, timeoutSeconds: 60 })).length, 1);
});

test('a source whose VM dies while it is captured is lost, with nothing left', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', async () => {
    [...f.host.vms.values()][0]?.die('killed');
    await new Promise((resolve) => setImmediate(resolve));
    throw new AenvError('capture_failed', 'the VM is gone');
  });
  await assert.rejects(f.sandboxes.fork(sandboxId, { count: 1, timeoutSeconds: 60 }), hasCode('capture_failed'));
  await f.sandboxes.routes.get(sandboxId)?.gone;
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.state, 'lost');
  assert.deepEqual(f.host.inventory(), []);
});

test('what a paused or unknown sandbox does not allow is refused; forks, pauses and kills take turns', async () => {
  await using f = await fixture();
  const options = { count: 1, timeoutSeconds: 60 };
  await assert.rejects(f.sandboxes.fork('nonexistingsandbox', options), hasCode('sandbox_not_found'));
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const [forks, again, paused] = await Promise.all([
    f.sandboxes.fork(sandboxId, options),
    f.sandboxes.fork(sandboxId, options),
    f.sandboxes.pause(sandboxId, { memory: true }),
  ]);
  assert.equal(paused, undefined);
  assert.deepEqual([views(forks).length, views(again).length], [1, 1]);
  await assert.rejects(f.sandboxes.fork(sandboxId, options), hasCode('sandbox_paused'));
  await f.sandboxes.kill(sandboxId);
  await Promise.all([...views(forks), ...views(again)].map((child) => f.sandboxes.kill(child.sandboxId)));
  assert.deepEqual(f.host.inventory(), []);
});
