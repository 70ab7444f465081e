import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { CREATE, fixture } from '../testing/fixture.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;

test('a snapshot outlives its source; sandboxes of it are their own, with its environment, and may be its source again', async () => {
  await using f = await fixture();
  const source = await f.sandboxes.create({ ...CREATE, envVars: { KEEP: '2', MINE: 'x' } });
  const snapshot = await f.sandboxes.snapshot(source.sandboxId, { alias: 'ready', tag: 'v1' });
  assert.equal(f.sandboxes.get(source.sandboxId).state, 'running');
  assert.equal([...f.host.vms.values()][0]?.state, 'running');
  await f.sandboxes.kill(source.sandboxId);
  assert.deepEqual(f.host.inventory(), ['checkpoint']);

  const made = [];
  for (const template of [`${snapshot.templateId}:default`, snapshot.templateId, 'default/ready:v1', 'ready:v1']) {
    made.push(await f.sandboxes.create({ ...CREATE, template, envVars: { MINE: 'y' } }));
  }
  const rows = [source, ...made].map(({ sandboxId }) => f.ledger.sandboxes.get(sandboxId));
  for (const secret of ['sandboxId', 'envdAccessToken', 'hostSecret', 'incarnation'] as const) {
    assert.equal(new Set(rows.slice(1).map((row) => row?.[secret])).size, 4, secret);
  }
  for (const [at, view] of made.entries()) {
    assert.deepEqual([view.templateId, view.alias, view.state], [snapshot.templateId, 'ready', 'running']);
    const init = f.host.inits[at + 1];
    assert.deepEqual(init?.envVars, { FROM: 'template', KEEP: '2', MINE: 'y' });
    assert.deepEqual([init?.hostname, init?.sandboxId], [view.sandboxId, view.sandboxId]);
    assert.equal(init?.accessToken, view.envdAccessToken);
    assert.equal(init?.hostSecret, rows[at + 1]?.hostSecret);
  }
  assert.deepEqual(f.host.services, []);
  assert.deepEqual(f.spawns, [source.templateId]);
  const second = await f.sandboxes.snapshot(made[0]?.sandboxId ?? '');
  assert.deepEqual(second.start.envVars, { FROM: 'template', KEEP: '2', MINE: 'y' });
  const deeper = await f.sandboxes.create({ ...CREATE, template: second.templateId });
  assert.deepEqual([deeper.templateId, deeper.alias], [second.templateId, undefined]);
});

test('a VM that dies while its failed snapshot is taken back is lost, and the caller hears why the snapshot failed', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  f.host.hooks.set('resume', async () => {
    [...f.host.vms.values()][0]?.die('out of memory');
    await new Promise((resolve) => setImmediate(resolve));
  });
  await assert.rejects(f.sandboxes.snapshot(sandboxId), hasCode('no_space'));
  await f.sandboxes.routes.get(sandboxId)?.gone;
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.state, 'lost');
  assert.deepEqual(f.host.inventory(), []);
});

test('a name moves to the newest; the one before keeps its id, and nothing is known before it is durable', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const name = { alias: 'ready', tag: 'default' };
  const first = await f.sandboxes.snapshot(sandboxId, name);
  f.host.hooks.set('capture', () => {
    throw new AenvError('no_space', 'the disk is full');
  });
  await assert.rejects(f.sandboxes.snapshot(sandboxId, name), hasCode('no_space'));
  assert.equal(f.snapshots.get('ready').templateId, first.templateId);
  assert.equal([...f.host.vms.values()][0]?.state, 'running');
  assert.equal(f.sandboxes.routes.lookup(sandboxId).kind, 'running');
  f.host.hooks.clear();
  await f.clock.advance(1000);
  const second = await f.sandboxes.snapshot(sandboxId, name);
  assert.equal(f.snapshots.get('default/ready').templateId, second.templateId);
  assert.equal(f.snapshots.get(first.templateId).name, undefined);
  const all = f.snapshots.list({ limit: 10 }).items;
  assert.deepEqual(
    all.map(({ templateId }) => templateId),
    [second.templateId, first.templateId],
  );
  await assert.rejects(f.sandboxes.snapshot(sandboxId, { alias: 'base', tag: 'v2' }), hasCode('invalid_request'));
});

test('what is used is not removed and names its sandboxes, paused ones too; then it is gone for good', async () => {
  await using f = await fixture();
  const source = await f.sandboxes.create(CREATE);
  const { templateId } = await f.sandboxes.snapshot(source.sandboxId);
  const running = await f.sandboxes.create({ ...CREATE, template: templateId });
  const paused = await f.sandboxes.create({ ...CREATE, template: templateId });
  await f.sandboxes.pause(paused.sandboxId, { memory: true });
  const both = [running.sandboxId, paused.sandboxId];
  await assert.rejects(f.snapshots.remove(templateId), (error) => {
    assert.ok(error instanceof AenvError && error.code === 'snapshot_in_use' && error.status === 400);
    for (const id of both) assert.ok(error.message.includes(id));
    assert.ok(!error.message.includes(source.sandboxId));
    return true;
  });
  for (const id of both) await f.sandboxes.kill(id);
  assert.equal(await f.snapshots.remove(templateId), true);
  assert.equal(await f.snapshots.remove(templateId), false);
  assert.equal(f.host.checkpointsOnDisk.size, 0);
  await assert.rejects(f.sandboxes.create({ ...CREATE, template: templateId }), hasCode('template_not_found'));
});

test('a paused, a dying and an unknown sandbox are refused by their state, and a kill waits for the snapshot', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  await f.sandboxes.pause(sandboxId, { memory: true });
  await assert.rejects(f.sandboxes.snapshot(sandboxId), { code: 'sandbox_paused', remediation: /aenv resume/ });
  await f.sandboxes.connect(sandboxId, 60);
  const [taken, killed, late] = await Promise.allSettled([
    f.sandboxes.snapshot(sandboxId),
    f.sandboxes.kill(sandboxId),
    f.sandboxes.snapshot(sandboxId),
  ]);
  assert.deepEqual([taken.status, killed.status], ['fulfilled', 'fulfilled']);
  assert.ok(late.status === 'rejected' && hasCode('sandbox_not_found')(late.reason), String(late));
  assert.deepEqual(f.host.inventory(), ['checkpoint']);
  const other = await f.sandboxes.create(CREATE);
  const held = Promise.withResolvers<void>();
  f.host.hooks.set('stop', () => held.promise);
  const killing = f.sandboxes.kill(other.sandboxId);
  await assert.rejects(f.sandboxes.snapshot(other.sandboxId), {
    ...{ code: 'sandbox_not_running', message: /killing/, remediation: /./ },
  });
  held.resolve();
  await killing;
});

test('a source that dies while it is captured is lost, and no snapshot of it is known', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  f.host.hooks.set('capture', async () => {
    [...f.host.vms.values()][0]?.die('killed');
    await new Promise((resolve) => setImmediate(resolve));
    throw new AenvError('vm_died', 'it is gone');
  });
  await assert.rejects(f.sandboxes.snapshot(sandboxId), hasCode('vm_died'));
  await f.sandboxes.routes.get(sandboxId)?.gone;
  assert.deepEqual(f.host.inventory(), []);
  assert.deepEqual(f.snapshots.list({ limit: 10 }), { items: [] });
});

test('attached drives are part of a snapshot, and of a pause without memory', async () => {
  const drive = { driveId: 'data', label: 'aenv-drive-1', mountPath: '/data', readOnly: false, sizeMb: 64 };
  const drives = [{ drive, disk: { kind: 'layers', layers: ['/drive.layer'] } as const }];
  await using f = await fixture();
  const source = await f.sandboxes.create({ ...CREATE, cold: true, drives });
  const { templateId } = await f.sandboxes.snapshot(source.sandboxId);
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, template: templateId });
  assert.deepEqual(f.ledger.sandboxes.get(sandboxId)?.drives, [drive]);
  assert.ok(f.host.volumesOnDisk.has(`${sandboxId}-1`));
  await f.sandboxes.pause(sandboxId, { memory: false });
  assert.ok(!f.host.volumesOnDisk.has(`${sandboxId}-1`));
  await f.sandboxes.connect(sandboxId, 60);
  assert.ok(f.host.volumesOnDisk.has(`${sandboxId}-1`));
  assert.deepEqual(f.host.inits.at(-1)?.drives, [{ label: 'aenv-drive-1', mountPath: '/data', readOnly: false }]);
});
