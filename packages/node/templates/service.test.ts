import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { ManualClock } from '../sandboxes/testing/manual-clock.ts';
import { type Ledger, openLedger } from '../store/ledger.ts';
import { fullTemplate } from '../store/testing/records.ts';
import { BASE } from './base.ts';
import { localLayers } from './layers.ts';
import { registerBuiltin, type TemplateBuild } from './register.ts';
import { Templates } from './service.ts';

const BUILD: TemplateBuild = {
  source: { imageDigest: 'sha256:aa', layers: localLayers(['/assets/aa.layer']) },
  start: { envVars: { LANG: 'C.UTF-8' }, user: 'user', workdir: '/home/user' },
  envdVersion: '0.6.13',
};

let home = '';
let ledger: Ledger;
const clock = new ManualClock();
const register = (build = BUILD) =>
  registerBuiltin({ ledger: ledger.templates, clock, log: silentLogger }, BASE, build);
const templates = () => new Templates({ ledger: ledger.templates, clock, namespace: 'default' });

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'aenv-templates-'));
  ledger = openLedger(home);
});
afterEach(async () => {
  ledger.close();
  await rm(home, { recursive: true, force: true });
});

test('base has its documented size, and keeps id and build over restarts', async () => {
  const first = register();
  assert.match(first.templateId, /^[a-z0-9]{20}$/);
  assert.match(first.buildId, /^[0-9a-f-]{36}$/);
  assert.deepEqual([first.cpuCount, first.memoryMb, first.diskSizeMb], [1, 512, 10_240]);
  ledger.close();
  ledger = openLedger(home);
  const again = register();
  assert.equal(again.templateId, first.templateId);
  assert.equal(again.buildId, first.buildId);
  assert.equal(templates().list().length, 1);
});

test('another root file system, environment or envd is a new build of the same template', async () => {
  const first = register();
  templates().recordSpawn(first.templateId);
  const second = register({
    ...BUILD,
    source: { imageDigest: 'sha256:bb', layers: localLayers(['/assets/bb.layer']) },
  });
  assert.equal(second.templateId, first.templateId);
  assert.notEqual(second.buildId, first.buildId);
  const resolved = templates().resolve('base');
  assert.deepEqual(resolved.source.layers, localLayers(['/assets/bb.layer']));
  assert.equal(resolved.spawnCount, 1);
  assert.notEqual(register({ ...BUILD, envdVersion: '0.6.14' }).buildId, second.buildId);
});

test('what runs from the beginning is kept, and another one is a new build', () => {
  const first = register();
  const start = {
    ...BUILD.start,
    startCommand: { cmd: 'serve', user: 'root' },
    ready: { kind: 'http', port: 49999, path: '/health' },
  } as const;
  const second = register({ ...BUILD, start });
  assert.notEqual(second.buildId, first.buildId);
  assert.deepEqual(templates().resolve('base').start, start);
  assert.equal(register({ ...BUILD, start }).buildId, second.buildId);
  const other = { ...start, ready: { kind: 'command', cmd: 'true', user: 'user' } } as const;
  assert.notEqual(register({ ...BUILD, start: other }).buildId, second.buildId);
  assert.deepEqual(templates().resolve('base').start, other);
});

test('resolves by id, alias, tag and namespace, in any case', () => {
  const { templateId } = register();
  for (const reference of ['base', ' BASE ', 'base:default', 'default/base', 'default/base:default', templateId]) {
    assert.equal(templates().resolve(reference).templateId, templateId, reference);
  }
});

const MISSING: Record<string, string> = {
  nope: "template 'nope' not found",
  'Nope:v1': "template 'nope' not found",
  'other/base': "template 'other/base' not found",
  'base:v2': "tag 'v2' does not exist for template 'base'",
  'default/base:v2': "tag 'v2' does not exist for template 'default/base'",
};
for (const [reference, message] of Object.entries(MISSING)) {
  test(`'${reference}' is answered with: ${message}`, () => {
    register();
    assert.throws(
      () => templates().resolve(reference),
      (error) => error instanceof AenvError && error.code === 'template_not_found' && error.message === message,
    );
  });
}

test('starts are counted with their time', () => {
  const { templateId } = register();
  templates().recordSpawn(templateId);
  templates().recordSpawn(templateId);
  const { spawnCount, lastSpawnedAt } = templates().resolve('base');
  assert.equal(spawnCount, 2);
  assert.equal(lastSpawnedAt?.getTime(), clock.now());
});

test('a template has as many versions as its tags point at; what sandboxes start from follows the tag', () => {
  const first = register();
  const service = templates();
  service.assignTags('base', ['v1', ' V1 ']);
  const second = register({ ...BUILD, envdVersion: 'newer' });
  assert.equal(service.resolve('base').buildId, second.buildId);
  assert.equal(service.resolve('base:v1').buildId, first.buildId);
  assert.equal(service.resolve('base:v1').templateId, second.templateId);
  assert.equal(service.list().length, 1);
  assert.equal(service.versions('base').length, 2);
  // The version goes with its last tag.
  service.assignTags('base', ['v1']);
  assert.deepEqual(
    service.versions('base:v1').map(({ buildId }) => buildId),
    [second.buildId],
  );
  service.removeTags('base', ['v1']);
  assert.throws(() => service.find('base:v1'), /tag 'v1' does not exist/);
  assert.equal(service.find('base').buildId, second.buildId);
});

test('a template need not have the tag default: then a sandbox needs a tag, and the last one stays', () => {
  const only = fullTemplate({ aliases: ['tagged'] });
  ledger.templates.put(only, ['v1']);
  const service = templates();
  assert.throws(() => service.resolve('tagged'), /tag 'default' does not exist for template 'tagged'/);
  assert.equal(service.resolve('tagged:v1').buildId, only.buildId);
  assert.equal(service.find('tagged').buildId, only.buildId);
  assert.throws(() => service.removeTags('tagged', ['v1']), /no tag left/);
  assert.ok(service.list().some(({ templateId }) => templateId === only.templateId));
});
