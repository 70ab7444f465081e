import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { CREATE, type Fixture, fixture } from '../testing/fixture.ts';

const PAUSE = { shutdown: { action: 'pause', timeoutMs: 60_000 } } as const;
const rowOf = (f: Fixture, id: string) => f.ledger.sandboxes.get(id);

/** Waits until the host has come to a point. */
async function reaches(f: Fixture, point: string): Promise<void> {
  while (f.host.reached.at(-1) !== point) await new Promise((resolve) => setImmediate(resolve));
}

test('what ran goes on after the restart with what was left of its time, what was paused stays paused', async () => {
  await using f = await fixture(PAUSE);
  const running = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 100 });
  const paused = await f.sandboxes.create(CREATE);
  await f.sandboxes.pause(paused.sandboxId, { memory: true });
  await f.clock.advance(30_000);
  const report = await f.sandboxes.close();
  assert.deepEqual(report, { paused: [running.sandboxId], ended: [], failures: [], left: [] });
  assert.deepEqual(f.host.inventory(), ['checkpoint', 'checkpoint']);

  await f.clock.advance(3_600_000);
  const next = f.restart();
  next.takeUpPaused();
  next.bringBack();
  await next.routes.get(running.sandboxId)?.exclusive(async () => {});
  const view = next.get(running.sandboxId);
  assert.deepEqual(
    [view.state, view.envdAccessToken, view.endAt.getTime() - f.clock.now()],
    ['running', running.envdAccessToken, 70_000],
  );
  assert.equal(next.get(paused.sandboxId).state, 'paused');
  assert.equal(rowOf(f, running.sandboxId)?.checkpoint, undefined);
  await next.kill(running.sandboxId);
  await next.kill(paused.sandboxId);
  assert.deepEqual(f.host.inventory(), []);
  await next.close();
});

test('who asks for one that is still to come back gets it at once; a pause makes it stay', async () => {
  await using f = await fixture(PAUSE);
  const ids = await Promise.all([1, 2, 3].map(async () => (await f.sandboxes.create(CREATE)).sandboxId));
  const [connected = '', visited = '', stays = ''] = ids;
  await f.sandboxes.close();
  const next = f.restart();
  next.takeUpPaused();
  const { resumed, view } = await next.connect(connected, 30);
  assert.deepEqual([resumed, view.endAt.getTime() - f.clock.now()], [true, 60_000]);
  const route = next.routes.lookup(visited);
  assert.ok(route.kind === 'unavailable' && route.wake !== undefined);
  await route.wake();
  assert.equal(next.routes.lookup(visited).kind, 'running');
  await next.pause(stays, { memory: true });
  await assert.rejects(next.pause(stays, { memory: true }), { code: 'sandbox_paused' });
  next.bringBack();
  await next.close();
  assert.equal(rowOf(f, stays)?.checkpoint?.leftMs, undefined);
  assert.equal(rowOf(f, connected)?.checkpoint?.leftMs, 60_000);
});

test('one that was paused while it was still to come back, or came back and was paused, is let alone', async () => {
  const limits = { maxSandboxes: 9, memoryShare: 0, maxConcurrentStarts: 1, maxQueuedStarts: 9 };
  await using f = await fixture({ ...PAUSE, limits });
  const ids: string[] = [];
  // The one that has stood longest comes back first.
  for (let at = 0; at < 4; at++, await f.clock.advance(1_000)) ids.push((await f.sandboxes.create(CREATE)).sandboxId);
  const [first = '', stays = '', again = '', third = ''] = ids;
  await f.sandboxes.close();
  const next = f.restart();
  next.takeUpPaused();
  const held = Promise.withResolvers<void>();
  f.host.hooks.set('restore', () => held.promise);
  next.bringBack();
  await reaches(f, 'restore');
  f.host.hooks.delete('restore');
  const killed = next.routes.lookup(third);
  assert.ok(killed.kind === 'unavailable' && killed.wake !== undefined);
  await Promise.all([next.kill(third), killed.wake()]);
  assert.deepEqual(next.routes.lookup(third), { kind: 'unknown' });
  await next.pause(stays, { memory: true });
  const route = next.routes.lookup(again);
  assert.ok(route.kind === 'unavailable' && route.wake !== undefined);
  const pausing = next.pause(again, { memory: true });
  const waking = route.wake();
  await pausing;
  held.resolve();
  await next.routes.get(first)?.exclusive(async () => {});
  await waking;
  assert.deepEqual(next.routes.lookup(again), { kind: 'unavailable', state: 'paused' });
  await next.close();
  for (const id of [stays, again]) {
    assert.deepEqual([rowOf(f, id)?.state, rowOf(f, id)?.checkpoint?.leftMs], ['paused', undefined], id);
  }
});

test('what only a shutdown has paused is not paused for too long, however long the daemon was down', async () => {
  await using f = await fixture({ ...PAUSE, paused: { ttlSeconds: 100 } });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const other = await f.sandboxes.create(CREATE);
  await f.sandboxes.close();
  await f.clock.advance(3_600_000);
  const next = f.restart();
  next.takeUpPaused();
  await f.clock.advance(5_000);
  await next.pause(other.sandboxId, { memory: true });
  await f.clock.advance(50_000);
  assert.equal(rowOf(f, other.sandboxId)?.state, 'paused', 'its time begins with its own pause');
  await f.clock.advance(60_000);
  await next.routes.get(other.sandboxId)?.gone;
  assert.equal(rowOf(f, other.sandboxId)?.endReason, 'expired');
  next.bringBack();
  await next.routes.get(sandboxId)?.exclusive(async () => {});
  assert.equal(rowOf(f, sandboxId)?.state, 'running');
  await next.close();
});

test('one that cannot be paused is ended and says why; one that does not come back stays paused', async () => {
  const limits = { maxSandboxes: 9, memoryShare: 0, maxConcurrentStarts: 1, maxQueuedStarts: 9 };
  await using f = await fixture({ ...PAUSE, limits });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const other = await f.sandboxes.create(CREATE);
  let captures = 0;
  f.host.hooks.set('capture', () => {
    if (++captures <= 2) throw new AenvError('no_space', 'the disk is full');
  });
  const report = await f.sandboxes.close();
  assert.deepEqual(report.paused, [other.sandboxId]);
  assert.deepEqual(report.failures, [{ sandboxId, reason: 'the disk is full' }]);
  const row = rowOf(f, sandboxId);
  assert.deepEqual([row?.endReason, row?.endMessage], ['shutdown', 'it could not be paused: the disk is full']);
  assert.deepEqual(f.host.inventory(), ['checkpoint']);

  f.host.hooks.set('restore', () => {
    throw new AenvError('restore_failed', 'as planned');
  });
  const next = f.restart();
  next.takeUpPaused();
  next.bringBack();
  await next.routes.get(other.sandboxId)?.exclusive(async () => {});
  await next.close();
  assert.equal(rowOf(f, other.sandboxId)?.state, 'paused');
  assert.ok(f.lines.some((line) => line.message.includes('does not come back')));
});

for (const code of ['snapshot_incompatible', 'no_space'] as const) {
  test(`one whose memory cannot be kept keeps its disk: ${code}`, async () => {
    await using f = await fixture(PAUSE);
    const { sandboxId } = await f.sandboxes.create(CREATE);
    let asked = 0;
    f.host.hooks.set('admit', () => {
      if (++asked === 1) throw new AenvError(code, 'as planned');
    });
    assert.deepEqual((await f.sandboxes.close()).paused, [sandboxId]);
    const { checkpoint } = rowOf(f, sandboxId) ?? {};
    assert.deepEqual([checkpoint?.memory, checkpoint?.leftMs], [false, 60_000]);
    assert.ok(f.lines.some(({ level, message }) => level === 'warn' && message.includes('without its memory')));
  });
}

test('a resume that is under way is broken off and its sandbox stays paused', async () => {
  await using f = await fixture(PAUSE);
  const { sandboxId } = await f.sandboxes.create(CREATE);
  await f.sandboxes.pause(sandboxId, { memory: true });
  f.host.hooks.set(
    'init',
    (signal) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  );
  const resuming = f.sandboxes.connect(sandboxId, 60);
  resuming.catch(() => {});
  await reaches(f, 'init');
  await f.sandboxes.close();
  await assert.rejects(resuming, { code: 'shutting_down' });
  assert.deepEqual([rowOf(f, sandboxId)?.state, rowOf(f, sandboxId)?.checkpoint?.leftMs], ['paused', undefined]);
  assert.deepEqual(f.host.inventory(), ['checkpoint']);
});

test('the time is bounded: what had no turn is ended, what hangs is left to the next start', async () => {
  const limits = { maxSandboxes: 9, memoryShare: 0, maxConcurrentStarts: 1, maxQueuedStarts: 9 };
  await using f = await fixture({ ...PAUSE, limits });
  const first = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 600 });
  const second = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 600 });
  const held = Promise.withResolvers<void>();
  f.host.hooks.set('capture', () => held.promise);
  const closing = f.sandboxes.close();
  await f.clock.advance(61_000);
  held.resolve();
  const report = await closing;
  assert.deepEqual([report.paused, report.ended, report.left], [[first.sandboxId], [second.sandboxId], []]);
  assert.match(rowOf(f, second.sandboxId)?.endMessage ?? '', /no time left/);

  const next = f.restart();
  next.takeUpPaused();
  await next.connect(first.sandboxId, 60);
  const hangs = Promise.withResolvers<void>();
  f.host.hooks.set('capture', () => hangs.promise);
  const late = next.close();
  await f.clock.advance(90_000);
  assert.deepEqual((await late).left, [first.sandboxId]);
  hangs.resolve();
  await next.routes.get(first.sandboxId)?.exclusive(async () => {});
});
