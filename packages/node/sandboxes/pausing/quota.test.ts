import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CREATE, fixture } from '../testing/fixture.ts';

const MIB = 2 ** 20;
const MEMORY = { memory: true };

test('one pause more than there may be paused sandboxes is refused, and the sandbox runs on; a shutdown asks nobody', async () => {
  await using f = await fixture({ paused: { max: 1 }, shutdown: { action: 'pause', timeoutMs: 60_000 } });
  const [first, second] = await Promise.all([f.sandboxes.create(CREATE), f.sandboxes.create(CREATE)]);
  const results = await Promise.allSettled([
    f.sandboxes.pause(first.sandboxId, MEMORY),
    f.sandboxes.pause(second.sandboxId, MEMORY),
  ]);
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const refused = results.find((result) => result.status === 'rejected');
  assert.match(String(refused?.reason), /paused\.max is 1/);
  assert.equal(f.sandboxes.routes.all().filter((live) => live.lifecycle.state === 'running').length, 1);
  assert.equal((await f.sandboxes.close()).paused.length, 1);
});

test('the bytes of paused sandboxes are counted, also of those that are just being paused', async () => {
  await using f = await fixture({ paused: { maxBytes: 10 * MIB } });
  const { sandboxId } = await f.sandboxes.create(CREATE);
  const other = await f.sandboxes.create(CREATE);
  f.host.privateBytes = 6 * MIB;
  await f.sandboxes.pause(sandboxId, MEMORY);
  assert.equal(f.ledger.sandboxes.get(sandboxId)?.checkpoint?.bytes, 6 * MIB);
  await assert.rejects(f.sandboxes.pause(other.sandboxId, MEMORY), {
    code: 'capacity_exhausted',
    message: /paused\.max_bytes/,
  });
  await f.sandboxes.connect(sandboxId, 60);
  await f.sandboxes.pause(other.sandboxId, MEMORY);
});

test('a sandbox whose time is over and that may not be paused runs on, is tried again, and is paused when it may be', async () => {
  await using f = await fixture({ paused: { max: 1 } });
  const blocker = await f.sandboxes.create(CREATE);
  await f.sandboxes.pause(blocker.sandboxId, MEMORY);
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 5, onTimeout: 'pause' });
  await f.clock.advance(12_000);
  assert.equal(f.sandboxes.get(sandboxId).state, 'running');
  assert.equal(f.lines.filter((line) => line.message.includes('could not be paused')).length, 1);
  await f.sandboxes.kill(blocker.sandboxId);
  await f.clock.advance(20_000);
  await f.sandboxes.routes.get(sandboxId)?.exclusive(async () => {});
  assert.equal(f.sandboxes.get(sandboxId).state, 'paused');
});

test('a sandbox that is paused for too long is deleted, and the ledger says why', async () => {
  await using f = await fixture({ paused: { ttlSeconds: 100 } });
  const { sandboxId } = await f.sandboxes.create({ ...CREATE, timeoutSeconds: 1000 });
  await f.sandboxes.pause(sandboxId, MEMORY);
  await f.clock.advance(99_000);
  await f.sandboxes.connect(sandboxId, 1000);
  await f.clock.advance(99_000);
  await f.sandboxes.pause(sandboxId, MEMORY);
  await f.clock.advance(99_000);
  const live = f.sandboxes.routes.get(sandboxId);
  assert.equal(live?.lifecycle.state, 'paused');
  await f.clock.advance(2_000);
  await live?.gone;
  const row = f.ledger.sandboxes.get(sandboxId);
  assert.deepEqual([row?.state, row?.endReason], ['ended', 'expired']);
  assert.match(row?.endMessage ?? '', /paused\.ttl_seconds/);
  assert.deepEqual(f.host.inventory(), []);
});
