import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ListQuery } from '../sandboxes/contract.ts';
import { Database } from './database.ts';
import { SandboxLedger } from './sandbox-ledger.ts';
import { toView } from './sandbox-record.ts';
import { TemplateLedger } from './template-ledger.ts';
import { fullRecord, fullTemplate } from './testing/records.ts';

const ALL: ListQuery = { states: ['running', 'paused'], order: 'desc', limit: 100 };
const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds));

describe('SandboxLedger', () => {
  let folder: string;
  let database: Database;
  let ledger: SandboxLedger;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'aenv-ledger-'));
    database = Database.open(join(folder, 'aenv.db'));
    ledger = new SandboxLedger(database);
  });
  afterEach(() => {
    database.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const insert = (sandboxId: string, startedAt: Date, more: Parameters<typeof fullRecord>[0] = {}) =>
    ledger.insert(fullRecord({ sandboxId, startedAt, ...more }));
  const ids = (query: Partial<ListQuery> = {}) => ledger.list({ ...ALL, ...query }).items.map((item) => item.sandboxId);

  it('gives back exactly what was put in, with absent members absent', () => {
    const {
      alias,
      envdAccessToken,
      trafficAccessToken,
      slotIndex,
      netns,
      vm,
      volumeId,
      incarnation,
      bootId,
      ...least
    } = fullRecord({ network: { allowPublicTraffic: true, httpsPorts: [] }, allowInternetAccess: false });
    const created = { ...least, state: 'creating' } as const;
    ledger.insert(created);
    assert.deepEqual(ledger.get(created.sandboxId), created);
    const filled = { envdAccessToken, trafficAccessToken, slotIndex, netns, vm, volumeId, incarnation, bootId };
    const changes = Object.fromEntries(Object.entries(filled).filter(([, value]) => value !== undefined));
    assert.deepEqual(ledger.update(created.sandboxId, 'creating', { state: 'running', ...changes }), {
      ...created,
      ...changes,
      state: 'running',
    });
    assert.equal(alias, 'base');
  });

  it('changes a record only in an expected state', () => {
    const { sandboxId } = fullRecord();
    ledger.insert(fullRecord());
    assert.equal(ledger.update(sandboxId, 'creating', { state: 'ended' }), undefined);
    assert.equal(ledger.get(sandboxId)?.state, 'running');
    assert.equal(ledger.update(sandboxId, ['creating', 'running'], { state: 'killing' })?.state, 'killing');
    assert.equal(ledger.update('iabsent', 'running', { state: 'killing' }), undefined);
  });

  it('keeps ended ones with their reason and wipes their secrets from the row', () => {
    const { sandboxId } = fullRecord();
    ledger.insert(fullRecord());
    const change = { state: 'ended', endReason: 'expired', endedAt: at(9), vm: null, slotIndex: null } as const;
    ledger.update(sandboxId, 'running', change);
    const ended = ledger.get(sandboxId);
    assert.equal(ended?.endReason, 'expired');
    assert.deepEqual(ended?.endedAt, at(9));
    assert.equal(ended?.vm, undefined);
    const raw = JSON.stringify(database.get('SELECT * FROM sandboxes'));
    for (const secret of ['host-secret', 'envd-token', 'traffic-token', 'hello']) assert.ok(!raw.includes(secret));
    assert.deepEqual(ledger.live(), []);
    assert.deepEqual(ids(), []);
  });

  it('lists by start time and id in both orders', () => {
    insert('ib', at(1));
    insert('ia', at(1));
    insert('ic', at(0), { state: 'creating' });
    assert.deepEqual(ids(), ['ib', 'ia', 'ic']);
    assert.deepEqual(ids({ order: 'asc' }), ['ic', 'ia', 'ib']);
    assert.deepEqual(
      ledger.live().map((record) => record.sandboxId),
      ['ic', 'ia', 'ib'],
    );
    assert.deepEqual(ledger.countLive(), {
      creating: 1,
      running: 2,
      pausing: 0,
      paused: 0,
      resuming: 0,
      killing: 0,
    });
  });

  it('gives no token on a last page that is exactly full', () => {
    insert('ia', at(1));
    insert('ib', at(2));
    const first = ledger.list({ ...ALL, limit: 1 });
    assert.deepEqual([first.items[0]?.sandboxId, first.totalRunning], ['ib', 2]);
    assert.ok(first.nextToken !== undefined);
    const second = ledger.list({ ...ALL, limit: 1, nextToken: first.nextToken });
    assert.deepEqual([second.items[0]?.sandboxId, second.totalRunning, second.nextToken], ['ia', 2, undefined]);
  });

  it('pages on over rows that come and go in between', () => {
    for (let n = 0; n < 6; n++) insert(`i${n}`, at(n));
    const first = ledger.list({ ...ALL, limit: 2 });
    assert.deepEqual(
      first.items.map((item) => item.sandboxId),
      ['i5', 'i4'],
    );
    ledger.update('i4', 'running', { state: 'ended', endReason: 'killed', endedAt: at(60) });
    insert('inew', at(10));
    assert.ok(first.nextToken !== undefined);
    assert.deepEqual(ids({ limit: 2, nextToken: first.nextToken }), ['i3', 'i2']);
  });

  it('refuses tokens that are damaged, foreign or of the other order', () => {
    insert('ia', at(1));
    insert('ib', at(2));
    const nextToken = ledger.list({ ...ALL, limit: 1 }).nextToken ?? '';
    const texts = [
      'x',
      '',
      `${nextToken}AAAA`,
      Buffer.from('2026-99-99T00:00:00.000Z__ia__desc').toString('base64url'),
    ];
    for (const bad of texts) {
      assert.throws(
        () => ledger.list({ ...ALL, nextToken: bad }),
        (error: unknown) => error instanceof AenvError && error.code === 'invalid_request',
        bad,
      );
    }
    assert.throws(() => ledger.list({ ...ALL, order: 'asc', nextToken }), /order desc/);
  });

  it('filters by all metadata pairs, start time, template id and alias', () => {
    new TemplateLedger(database).put(fullTemplate({ aliases: ['base', 'other'] }));
    insert('ia', at(1), { metadata: { a: '1', b: '2', '$."x"': "'; --" } });
    insert('ib', at(2), { metadata: { a: '1' }, templateId: 'unnamed' });
    assert.deepEqual(ids({ metadata: { a: '1' } }), ['ib', 'ia']);
    assert.deepEqual(ids({ metadata: { a: '1', b: '2' } }), ['ia']);
    assert.deepEqual(ids({ metadata: { '$."x"': "'; --" } }), ['ia']);
    assert.deepEqual(ids({ metadata: { a: '2' } }), []);
    assert.deepEqual(ids({ metadata: {} }), ['ib', 'ia']);
    assert.deepEqual(ids({ startedAfter: at(2) }), ['ib']);
    assert.deepEqual(ids({ template: 'other' }), ['ia']);
    assert.deepEqual(ids({ template: 'unnamed' }), ['ib']);
    assert.deepEqual(ids({ template: 'nothing' }), []);
    assert.deepEqual(ids({ states: ['paused'] }), []);
    assert.equal(ledger.list({ ...ALL, limit: 1, metadata: { b: '2' } }).totalRunning, 1);
  });

  it('forgets ended ones by age and by number, never live ones', () => {
    for (let n = 0; n < 5; n++) {
      insert(`i${n}`, at(n));
      ledger.update(`i${n}`, 'running', { state: 'ended', endReason: 'killed', endedAt: at(n) });
    }
    insert('ilive', at(0));
    assert.equal(ledger.prune(at(2), 2), 3);
    assert.deepEqual(
      ['i0', 'i1', 'i2', 'i3', 'i4', 'ilive'].filter((id) => ledger.get(id) !== undefined),
      ['i3', 'i4', 'ilive'],
    );
  });

  it('names a damaged row instead of guessing', () => {
    ledger.insert(fullRecord());
    database.run(`UPDATE sandboxes SET options = '{"v":9}'`);
    assert.throws(() => ledger.get(fullRecord().sandboxId), /row of sandbox i0000000000000000000a is damaged/);
  });

  it('shows the API neither the host secret nor places on this host', () => {
    const text = JSON.stringify(toView(fullRecord()));
    for (const secret of ['host-secret', '/run/netns', 'inc1', 'hello']) assert.ok(!text.includes(secret), secret);
  });
});

describe('TemplateLedger', () => {
  it('moves an alias to the template that was put last, and keeps counts', () => {
    const folder = mkdtempSync(join(tmpdir(), 'aenv-ledger-'));
    try {
      using database = Database.open(join(folder, 'aenv.db'));
      const ledger = new TemplateLedger(database);
      const first = fullTemplate({ aliases: ['base', 'first'] });
      ledger.put(first);
      assert.deepEqual(ledger.get(first.templateId), first);
      ledger.recordSpawn(first.templateId, at(5));
      const second = fullTemplate({ templateId: 'template2', aliases: ['base'], createdAt: at(100) });
      ledger.put(second);
      assert.equal(ledger.byAlias('base')?.templateId, 'template2');
      assert.deepEqual(ledger.get(first.templateId)?.aliases, ['first']);
      ledger.put({ ...first, aliases: [], buildId: 'b2' });
      const again = ledger.get(first.templateId);
      assert.deepEqual([again?.spawnCount, again?.lastSpawnedAt, again?.buildId], [1, at(5), 'b2']);
      assert.deepEqual(
        ledger.list().map((template) => template.templateId),
        ['template2', first.templateId],
      );
      assert.equal(ledger.remove('template2'), true);
      assert.equal(ledger.byAlias('base'), undefined);
      assert.equal(ledger.remove('template2'), false);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
