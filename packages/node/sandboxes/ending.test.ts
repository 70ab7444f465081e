import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Point } from './testing/fake-host.ts';
import { CREATE, fixture } from './testing/fixture.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;

test('a kill cuts traffic at once, releases in reverse order and answers when all is gone', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const route = f.sandboxes.routes.lookup(sandboxId);
  assert.ok(route.kind === 'running');
  const ended: string[] = [];
  f.sandboxes.routes.onEnd((incarnation) => {
    assert.equal(f.host.vms.size, 1, 'sockets go before the VM');
    ended.push(incarnation);
  });
  f.host.reached.length = 0;
  const killing = f.sandboxes.kill(sandboxId);
  assert.deepEqual(ended, [route.target.incarnation]);
  assert.deepEqual(f.sandboxes.routes.lookup(sandboxId), { kind: 'unavailable', state: 'killing' });
  await killing;
  assert.equal(f.host.reached[0], 'stop');
  assert.deepEqual(f.host.reached.slice(1).sort(), ['release', 'remove']);
  assert.deepEqual(f.host.inventory(), []);
  assert.deepEqual(f.sandboxes.routes.lookup(sandboxId), { kind: 'unknown' });
  const row = f.ledger.sandboxes.get(sandboxId);
  assert.equal(row?.endReason, 'killed');
  assert.equal(row?.hostSecret, '');
  assert.equal(ended.length, 1);
});

test('an unsubscribed listener hears nothing more', async () => {
  await using f = await fixture();
  let calls = 0;
  const unsubscribe = f.sandboxes.routes.onEnd(() => calls++);
  await f.sandboxes.kill((await f.sandboxes.create(CREATE)).sandboxId);
  unsubscribe();
  await f.sandboxes.kill((await f.sandboxes.create(CREATE)).sandboxId);
  assert.equal(calls, 1);
});

test('two kills at the same time do it once; a third one later finds nothing and says why', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  await Promise.all([f.sandboxes.kill(sandboxId), f.sandboxes.kill(sandboxId)]);
  assert.equal(f.host.reached.filter((point) => point === 'stop').length, 1);
  await assert.rejects(f.sandboxes.kill(sandboxId), (error) => {
    assert.ok(error instanceof AenvError && error.code === 'sandbox_not_found');
    assert.equal(error.details.reason, 'killed');
    return true;
  });
  await assert.rejects(f.sandboxes.kill('nonexistingsandbox'), hasCode('sandbox_not_found'));
});

for (const point of ['acquire', 'create', 'attach', 'boot', 'health', 'init'] satisfies Point[]) {
  test(`a kill while the create is at '${point}' ends it there and leaves nothing`, async () => {
    await using f = await fixture();
    const { promise: reached, resolve } = Promise.withResolvers<void>();
    f.host.hooks.set(point, async (signal) => {
      resolve();
      // Steps that take a signal stop at it, the others come to their own end.
      if (signal === undefined) await new Promise((go) => setTimeout(go, 10));
      else await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    const creating = f.sandboxes.create(CREATE);
    creating.catch(() => {});
    await reached;
    const id = f.ledger.sandboxes.live()[0]?.sandboxId ?? '';
    await f.sandboxes.kill(id);
    await assert.rejects(creating, /was deleted while it started/);
    assert.deepEqual(f.host.inventory(), []);
    assert.equal(f.ledger.sandboxes.get(id)?.endReason, 'killed');
  });
}

test('a kill of a create that waits for its turn ends it without taking anything', async () => {
  const limits = { maxSandboxes: 9, memoryShare: 0, maxConcurrentStarts: 1, maxQueuedStarts: 9 };
  await using f = await fixture({ limits });
  const { promise, resolve } = Promise.withResolvers<void>();
  f.host.hooks.set('boot', () => promise);
  const first = f.sandboxes.create(CREATE);
  const second = f.sandboxes.create(CREATE);
  second.catch(() => {});
  const waiting = f.ledger.sandboxes
    .live()
    .find((row) => f.sandboxes.routes.get(row.sandboxId) === f.sandboxes.routes.all()[1]);
  await f.sandboxes.kill(waiting?.sandboxId ?? '');
  await assert.rejects(second, hasCode('sandbox_not_running'));
  resolve();
  await first;
  assert.equal(f.host.inventory().length, 3);
});

test('expiry ends what is due and nothing else, one that hangs does not hold up the others', async () => {
  await using f = await fixture();
  const stuck = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 5 });
  const { promise, resolve } = Promise.withResolvers<void>();
  let stops = 0;
  f.host.hooks.set('stop', () => (++stops === 1 ? promise : undefined));
  const short = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 6 });
  const long = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 100 });
  await f.clock.advance(4_000);
  assert.equal(f.sandboxes.get(stuck.sandboxId).state, 'running');
  await f.clock.advance(10_000);
  assert.equal(f.sandboxes.routes.lookup(stuck.sandboxId).kind, 'unavailable');
  await f.sandboxes.routes.get(short.sandboxId)?.gone;
  assert.equal(f.ledger.sandboxes.get(short.sandboxId)?.endReason, 'expired');
  assert.equal(f.sandboxes.get(long.sandboxId).state, 'running');
  resolve();
  await f.sandboxes.routes.get(stuck.sandboxId)?.gone;
  assert.equal(f.ledger.sandboxes.get(stuck.sandboxId)?.endReason, 'expired');
});

test('a sandbox that is extended in time is spared, a connect after the end is too late', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 2 });
  await f.clock.advance(1_000);
  await f.sandboxes.connect(sandboxId, 10);
  await f.clock.advance(9_000);
  assert.equal(f.sandboxes.get(sandboxId).state, 'running');
  f.host.hooks.set('stop', () => new Promise((resolve) => setTimeout(resolve, 20)));
  await f.clock.advance(1_000);
  await assert.rejects(f.sandboxes.connect(sandboxId, 60), hasCode('sandbox_not_running'));
  await f.sandboxes.kill(sandboxId);
  await assert.rejects(f.sandboxes.connect(sandboxId, 60), hasCode('sandbox_not_found'));
});

test('connect only extends, setTimeout sets, refresh extends by 15 s at least', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 100 });
  const left = () => (f.sandboxes.get(sandboxId).endAt.getTime() - f.clock.now()) / 1000;
  await f.sandboxes.connect(sandboxId, 50);
  assert.equal(left(), 100);
  const { view, resumed } = await f.sandboxes.connect(sandboxId, 200);
  assert.equal(left(), 200);
  assert.equal(resumed, false);
  assert.equal(view.endAt.getTime(), f.sandboxes.get(sandboxId).endAt.getTime());
  await f.sandboxes.setTimeout(sandboxId, 10);
  assert.equal(left(), 10);
  await f.sandboxes.refresh(sandboxId, 0);
  assert.equal(left(), 15);
  await f.sandboxes.refresh(sandboxId, 5);
  assert.equal(left(), 15);
  await f.sandboxes.setTimeout(sandboxId, 0);
  await f.clock.advance(1_000);
  assert.deepEqual(f.sandboxes.routes.lookup(sandboxId), { kind: 'unavailable', state: 'killing' });
  await f.sandboxes.routes.get(sandboxId)?.gone;
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.endReason, 'expired');
});

test('a VM that dies makes its sandbox lost, with its last words, and frees everything', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const ended: string[] = [];
  f.sandboxes.routes.onEnd((incarnation) => ended.push(incarnation));
  for (const vm of f.host.vms.values()) vm.die('Kernel panic - not syncing');
  await new Promise((resolve) => setImmediate(resolve));
  await f.sandboxes.routes.get(sandboxId)?.gone;
  assert.equal(ended.length, 1);
  const row = f.ledger.sandboxes.get(sandboxId);
  assert.equal(row?.state, 'lost');
  assert.equal(row?.endReason, 'vm_died');
  assert.match(row?.endMessage ?? '', /exit code 1: Kernel panic/);
  assert.deepEqual(f.host.inventory(), []);
  assert.throws(() => f.sandboxes.get(sandboxId), /its microVM died/);
});

for (const point of ['stop', 'release', 'remove'] satisfies Point[]) {
  test(`when '${point}' fails the rest is released all the same, and the kill says so`, async () => {
    await using f = await fixture();
    const { sandboxId } = await f.sandboxes.create(CREATE);
    f.host.hooks.set(point, () => {
      throw new Error('busy');
    });
    await assert.rejects(f.sandboxes.kill(sandboxId), hasCode('internal'));
    assert.equal(f.host.inventory().length, 1);
    assert.equal(f.ledger.sandboxes.get(sandboxId)?.state, 'ended');
    assert.ok(f.lines.some((line) => line.level === 'error'));
    await assert.rejects(f.sandboxes.kill(sandboxId), hasCode('sandbox_not_found'));
  });
}

test('a ledger that cannot be written stops no release; the row becomes final later', async () => {
  await using f = await fixture();
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const { update } = f.ledger.sandboxes;
  f.ledger.sandboxes.update = () => {
    throw new AenvError('no_space', 'database or disk is full');
  };
  await f.sandboxes.kill(sandboxId);
  assert.deepEqual(f.host.inventory(), []);
  assert.throws(() => f.sandboxes.get(sandboxId), hasCode('sandbox_not_found'));
  f.ledger.sandboxes.update = update;
  await f.clock.advance(1_000);
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.endReason, 'killed');
  assert.equal(f.sandboxes.routes.all().length, 0);
});

test('close ends running, starting and waiting sandboxes with the reason shutdown and takes no more', async () => {
  const limits = { maxSandboxes: 9, memoryShare: 0, maxConcurrentStarts: 1, maxQueuedStarts: 9 };
  await using f = await fixture({ limits });
  const running = await f.sandboxes.create(CREATE);
  const begun = Promise.withResolvers<void>();
  f.host.hooks.set('health', (signal) => {
    begun.resolve();
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  });
  const starting = f.sandboxes.create(CREATE);
  const waiting = f.sandboxes.create(CREATE);
  const results = Promise.allSettled([starting, waiting]);
  await begun.promise;
  const ids = f.ledger.sandboxes.live().map((row) => row.sandboxId);
  assert.equal(ids.length, 3);
  await f.sandboxes.close();
  for (const result of await results) {
    assert.ok(result.status === 'rejected' && hasCode('shutting_down')(result.reason));
  }
  assert.deepEqual(f.host.inventory(), []);
  for (const id of ids) assert.equal(f.ledger.sandboxes.get(id)?.endReason, 'shutdown');
  assert.ok(ids.includes(running.sandboxId));
  await assert.rejects(f.sandboxes.create(CREATE), hasCode('shutting_down'));
});

test('close does not wait for ever for a VM that does not go', async () => {
  await using f = await fixture();
  await f.sandboxes.create(CREATE);
  const { promise, resolve } = Promise.withResolvers<void>();
  f.host.hooks.set('stop', () => promise);
  let closed = false;
  const closing = f.sandboxes.close().then(() => {
    closed = true;
  });
  await f.clock.advance(10_000);
  assert.equal(closed, false);
  await f.clock.advance(15_000);
  await closing;
  resolve();
  await Promise.all(f.sandboxes.routes.all().map((live) => live.gone));
});
