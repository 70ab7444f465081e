import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { ManualClock } from '../sandboxes/testing/manual-clock.ts';
import { openLedger } from '../store/ledger.ts';
import { ApiKeys } from './api-keys.ts';
import { SingleKeyStore } from './key-store.ts';

const BOOTSTRAP = `e2b_${'0a'.repeat(32)}`;

function house(t: TestContext) {
  const home = mkdtempSync(join(tmpdir(), 'aenv-keys-'));
  const clock = new ManualClock();
  const bootstrap = new SingleKeyStore(BOOTSTRAP);
  let ledger = openLedger(home);
  t.after(() => {
    ledger.close();
    rmSync(home, { recursive: true, force: true });
  });
  const open = () => new ApiKeys({ ledger: ledger.keys, bootstrap, clock, log: silentLogger });
  const reopen = () => {
    ledger.close();
    ledger = openLedger(home);
    return open();
  };
  return { keys: open(), clock, reopen, ledger: () => ledger };
}

test('several keys speak for the team, also after a restart, and the key of the node is none of them', async (t) => {
  const { keys, clock, reopen } = house(t);
  const first = keys.create('first');
  await clock.advance(1000);
  const second = keys.create('second');
  assert.match(first.key, /^e2b_[0-9a-f]{64}$/);
  assert.notEqual(first.key, second.key);
  const again = reopen();
  assert.deepEqual(await again.verify(first.key), { keyId: first.record.keyId, team: 'default' });
  assert.deepEqual(await again.verify(BOOTSTRAP), { keyId: 'default', team: 'default' });
  assert.equal(await again.verify(`e2b_${'0b'.repeat(32)}`), undefined);
  assert.deepEqual(
    again.list().map((key) => key.name),
    ['first', 'second'],
  );
  assert.ok(!JSON.stringify(again.list()).includes(first.key.slice(4)), 'the key itself is nowhere');
});

test('a revoked key is out at once and stays out', async (t) => {
  const { keys, reopen } = house(t);
  const { key, record } = keys.create('short-lived');
  assert.ok(await keys.verify(key));
  keys.revoke(record.keyId);
  assert.equal(await keys.verify(key), undefined);
  assert.deepEqual(keys.list(), []);
  for (const unknown of [record.keyId, 'default', '']) {
    assert.throws(() => keys.revoke(unknown), { code: 'api_key_not_found' });
    assert.throws(() => keys.rename(unknown, 'x'), { code: 'api_key_not_found' });
  }
  assert.equal(await reopen().verify(key), undefined);
});

test('a use is written down, but not at each request', async (t) => {
  const { keys, clock, reopen } = house(t);
  const { key } = keys.create('used');
  const used = () => keys.list()[0]?.lastUsedAt?.getTime();
  assert.equal(used(), undefined);
  await keys.verify(key);
  const first = clock.now();
  assert.equal(used(), first);
  await clock.advance(60_000);
  await keys.verify(key);
  assert.equal(used(), first);
  await clock.advance(300_000);
  await keys.verify(key);
  assert.equal(used(), clock.now());
  assert.equal(reopen().list()[0]?.lastUsedAt?.getTime(), clock.now());
});

test('a ledger that cannot be written locks nobody out', async (t) => {
  const { keys, ledger } = house(t);
  const { key } = keys.create('k');
  ledger().close();
  assert.ok(await keys.verify(key));
});

test('a new name stays', (t) => {
  const { keys, reopen } = house(t);
  const { record } = keys.create('old');
  assert.equal(keys.rename(record.keyId, 'new').name, 'new');
  assert.equal(reopen().list()[0]?.name, 'new');
});
