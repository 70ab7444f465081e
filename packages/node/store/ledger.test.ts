import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { localLayers } from '../templates/layers.ts';
import { Database } from './database.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { MIGRATIONS } from './migrations.ts';
import { fullRecord, fullTemplate } from './testing/records.ts';

const code = (expected: string) => (error: unknown) => error instanceof AenvError && error.code === expected;

describe('the ledger as a file', () => {
  let home: string;
  let ledger: Ledger;

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'aenv-ledger-'));
    ledger = openLedger(home);
  });
  afterEach(() => {
    ledger.close();
    rmSync(home, { recursive: true, force: true });
  });

  it('keeps its rows and values over a restart', () => {
    ledger.sandboxes.insert(fullRecord());
    ledger.meta.set('node', 'n1');
    ledger.close();
    ledger = openLedger(home);
    assert.deepEqual(ledger.sandboxes.get(fullRecord().sandboxId), fullRecord());
    assert.equal(ledger.meta.get('node'), 'n1');
    assert.equal(ledger.meta.get('absent'), undefined);
  });

  it('keeps layers of both kinds, and reads those of versions that knew files only', () => {
    const { templateId, source } = fullTemplate();
    const remote = { kind: 'remote', host: 'r:5000', repository: 'a/b', digest: 'sha256:11', size: 7 } as const;
    ledger.templates.put(fullTemplate({ source: { ...source, layers: [remote, ...source.layers] } }));
    assert.deepEqual(ledger.templates.get(templateId)?.source.layers, [remote, ...source.layers]);
    ledger.close();
    const raw = new DatabaseSync(join(home, 'ledger', 'aenv.db'));
    const old = { v: 2, imageDigest: 'd', layers: ['/a', '/b'] };
    raw.prepare('UPDATE template_versions SET source = ?').run(JSON.stringify(old));
    raw.close();
    ledger = openLedger(home);
    assert.deepEqual(ledger.templates.get(templateId)?.source, { imageDigest: 'd', layers: localLayers(['/a', '/b']) });
  });

  it('takes over templates of before versions had names: each has one, with the tag default', () => {
    ledger.close();
    const path = join(home, 'ledger', 'aenv.db');
    rmSync(path);
    const raw = new DatabaseSync(path);
    const before = MIGRATIONS.findIndex((sql) => sql.includes('CREATE TABLE template_tags'));
    for (const sql of MIGRATIONS.slice(0, before)) raw.exec(sql);
    raw.exec(`PRAGMA user_version = ${before}`);
    const { buildId, source, start } = fullTemplate();
    raw
      .prepare("INSERT INTO templates VALUES ('t1', ?, 1, 512, 1024, 1000, 2000, NULL, 3, '0.6.13', ?, ?)")
      .run(buildId, JSON.stringify({ v: 3, ...source }), JSON.stringify({ v: 1, ...start }));
    raw.exec("INSERT INTO aliases VALUES ('tools', 't1')");
    raw.close();
    ledger = openLedger(home);
    const template = ledger.templates.byAlias('tools');
    assert.deepEqual(
      [template?.buildId, template?.source, template?.start, template?.spawnCount],
      [buildId, source, start, 3],
    );
    assert.deepEqual(ledger.templates.tags('t1'), [{ tag: 'default', buildId, createdAt: new Date(2000) }]);
  });

  it('takes over sandboxes that run, and snapshots, of before it was kept what they were booted from and take', () => {
    const { boot: _boot, vm, ...before } = fullRecord();
    assert.ok(vm !== undefined);
    const { build: _build, ...oldVm } = vm;
    ledger.sandboxes.insert({ ...before, vm: oldVm });
    ledger.close();
    const raw = new DatabaseSync(join(home, 'ledger', 'aenv.db'));
    const version = MIGRATIONS.findIndex((sql) => sql.includes('COLUMN boot'));
    raw.exec('ALTER TABLE sandboxes DROP COLUMN boot; ALTER TABLE snapshots DROP COLUMN bytes');
    raw.exec(
      'INSERT INTO snapshots VALUES (\'s1\', \'c1\', NULL, NULL, \'i1\', 1, 1, 512, 1024, \'0.6.13\', \'{"v":1,"envVars":{},"user":"u","workdir":"/"}\', \'[]\')',
    );
    raw.exec(`PRAGMA user_version = ${version}`);
    raw.close();
    ledger = openLedger(home);
    assert.deepEqual(ledger.sandboxes.get(before.sandboxId), { ...before, vm: oldVm });
    assert.deepEqual(
      [ledger.snapshots.get('s1')?.bytes, ledger.snapshots.usage()],
      [undefined, { count: 1, bytes: 0 }],
    );
    const { boot } = fullRecord();
    ledger.sandboxes.update(before.sandboxId, 'running', { vm, ...(boot === undefined ? {} : { boot }) });
    assert.deepEqual(ledger.sandboxes.get(before.sandboxId), fullRecord());
  });

  it('is readable by its owner only, write-ahead log included', () => {
    ledger.meta.set('k', 'v');
    assert.equal(statSync(join(home, 'ledger')).mode & 0o777, 0o700);
    assert.equal(statSync(join(home, 'ledger', 'aenv.db')).mode & 0o777, 0o600);
    assert.equal(statSync(join(home, 'ledger', 'aenv.db-wal')).mode & 0o777, 0o600);
  });

  it('refuses a second owner, in this process and in another one, until it is closed', () => {
    assert.throws(() => openLedger(home, { busyMs: 0 }), code('already_running'));
    const script = `
      import { openLedger } from ${JSON.stringify(new URL('./ledger.ts', import.meta.url).href)};
      try { openLedger(process.argv[1], { busyMs: 50 }); console.log('open'); } catch (error) { console.log(error.code); }`;
    const other = () =>
      spawnSync(process.execPath, ['--input-type=module-typescript', '-e', script, home], { encoding: 'utf8' });
    assert.equal(other().stdout.trim(), 'already_running');
    ledger.close();
    assert.equal(other().stdout.trim(), 'open');
    ledger = openLedger(home);
  });

  it('undoes a whole transaction when a part of it throws', () => {
    assert.throws(() =>
      ledger.transaction(() => {
        ledger.sandboxes.insert(fullRecord());
        throw new Error('later step');
      }),
    );
    assert.equal(ledger.sandboxes.get(fullRecord().sandboxId), undefined);
    ledger.transaction(() => ledger.sandboxes.insert(fullRecord()));
    assert.notEqual(ledger.sandboxes.get(fullRecord().sandboxId), undefined);
  });

  it('refuses a file of a newer version and leaves it alone', () => {
    ledger.close();
    const file = join(home, 'ledger', 'aenv.db');
    const raw = new DatabaseSync(file);
    raw.exec('PRAGMA user_version = 1000');
    raw.close();
    assert.throws(() => openLedger(home), code('ledger_failed'));
    const again = new DatabaseSync(file);
    assert.equal(again.prepare('PRAGMA user_version').get()?.user_version, 1000);
    again.close();
  });

  it('refuses a file that is no database', () => {
    ledger.close();
    writeFileSync(join(home, 'ledger', 'aenv.db'), 'x'.repeat(8192));
    assert.throws(() => openLedger(home), code('ledger_failed'));
  });

  it('says ledger_failed for a taken id, and no_space when the file cannot grow', () => {
    ledger.sandboxes.insert(fullRecord());
    assert.throws(() => ledger.sandboxes.insert(fullRecord()), code('ledger_failed'));
    using database = Database.open(join(home, 'small', 'aenv.db'));
    const pages = Number(database.get('PRAGMA page_count')?.page_count);
    database.get(`PRAGMA max_page_count = ${pages}`);
    const insert = () =>
      database.run('INSERT INTO meta (key, value) VALUES (:key, :value)', { key: 'big', value: 'x'.repeat(100_000) });
    assert.throws(insert, code('no_space'));
    assert.throws(() => database.transaction(insert), code('no_space'));
    database.run('INSERT INTO meta (key, value) VALUES (:key, :value)', { key: 'k', value: 'still usable' });
  });
});
