import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CREATE, fixture } from './testing/fixture.ts';

test('100 creates and kills, four at a time, leave nothing, and no boot or incarnation comes twice', async () => {
  await using f = await fixture();
  const incarnations: string[] = [];
  f.sandboxes.routes.onEnd((incarnation) => incarnations.push(incarnation));
  const boots = new Set<string | undefined>();
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let i = 0; i < 25; i++) {
        const { sandboxId } = await f.sandboxes.create(CREATE);
        boots.add(f.ledger.sandboxes.get(sandboxId)?.bootId);
        await f.sandboxes.kill(sandboxId);
      }
    }),
  );
  assert.equal(boots.size, 100);
  assert.equal(incarnations.length, 100);
  assert.equal(new Set(incarnations).size, 100);
  assert.deepEqual(f.host.inventory(), []);
  assert.deepEqual(f.ledger.sandboxes.live(), []);
  assert.equal(f.sandboxes.routes.all().length, 0);
});

test('the next sandbox has the address of the one before, but another incarnation, id, token and secret', async () => {
  await using f = await fixture();
  const a = await f.sandboxes.create(CREATE);
  const first = f.sandboxes.routes.lookup(a.sandboxId);
  await f.sandboxes.kill(a.sandboxId);
  const b = await f.sandboxes.create(CREATE);
  const second = f.sandboxes.routes.lookup(b.sandboxId);
  assert.ok(first.kind === 'running' && second.kind === 'running');
  assert.equal(first.target.address, second.target.address);
  assert.notEqual(first.target.incarnation, second.target.incarnation);
  assert.notEqual(first.target.hostSecret, second.target.hostSecret);
  assert.notEqual(a.envdAccessToken, b.envdAccessToken);
  assert.equal(f.sandboxes.routes.lookup(a.sandboxId).kind, 'unknown');
});

test('lists show what is alive, page by page', async () => {
  await using f = await fixture();
  for (const i of [1, 2, 3]) {
    await f.sandboxes.create({ ...CREATE, metadata: { n: `${i}`, odd: `${i % 2}` } });
    await f.clock.advance(1_000);
  }
  const query = { states: ['running'], order: 'desc', limit: 2 } as const;
  const page = f.sandboxes.list(query);
  assert.deepEqual(
    page.items.map((item) => item.metadata.n),
    ['3', '2'],
  );
  assert.equal(page.totalRunning, 3);
  const rest = f.sandboxes.list({ ...query, ...(page.nextToken && { nextToken: page.nextToken }) });
  assert.equal(rest.items.length, 1);
  assert.equal(rest.nextToken, undefined);
  assert.equal(f.sandboxes.list({ ...query, metadata: { odd: '1' } }).totalRunning, 2);
  assert.ok(!('hostSecret' in (page.items[0] ?? {})));
});
