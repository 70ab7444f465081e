import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { push } from '@aenv/images/testing/push.ts';
import { RegistryFixture } from '@aenv/images/testing/registry-fixture.ts';
import { tar } from '@aenv/images/testing/tar.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { unguarded } from '../../assets/testing/unguarded.ts';
import { type Ledger, openLedger } from '../../store/ledger.ts';
import { fullRecord } from '../../store/testing/records.ts';
import type { BuildIds, BuildState, TemplateBuilds } from '../builds/contract.ts';
import { Templates } from '../service.ts';
import { removeUnusedColdTemplates } from './cold-templates.ts';
import type { ImageBuild } from './contract.ts';
import { NodeImageTemplates } from './image-templates.ts';
import { createPull, type Pull } from './pull.ts';

const ALL = { offset: 0, limit: 100 };

let registry: RegistryFixture;
let dir: string;
let ledger: Ledger;
let images: NodeImageTemplates;

before(async () => {
  registry = await RegistryFixture.start();
});
after(() => registry.close());
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'aenv-image-templates-'));
  ledger = openLedger(dir);
  images = service();
});
afterEach(async () => {
  await images.close();
  ledger.close();
  await rm(dir, { recursive: true, force: true });
});

const none: TemplateBuilds = {
  startBuiltin: () => assert.fail('not asked for'),
  state: (_, buildId) => {
    throw new AenvError('template_not_found', `build '${buildId}' not found`);
  },
};

function service(pull: Pull = realPull()): NodeImageTemplates {
  return new NodeImageTemplates({
    ...{
      ledger,
      pull,
      uses: unguarded,
      builtin: none,
      reserved: ['base'],
      envdVersion: '1',
      clock: systemClock,
      log: silentLogger,
    },
    templates: new Templates({ ledger: ledger.templates, clock: systemClock, namespace: 'default' }),
  });
}

/** Against the registry, as the daemon does it. */
function realPull(): Pull {
  const config = {
    ...{ search: [registry.registry.host], insecure: [registry.registry.host], mirrors: [], ca: [] },
    dockerConfig: join(dir, 'no-docker.json'),
    ...{ offlineAfterSeconds: 1, cacheBytes: 0, cacheKeepFreeBytes: 0, completeLayers: false, completeAfterSeconds: 0 },
  };
  const { search, insecure, mirrors, ca, dockerConfig } = config;
  const sources = {
    registry: { search, insecure, mirrors, ca, dockerConfig },
    ...{ offlineAfterSeconds: 1, cacheBytes: 2 ** 30, cacheKeepFreeBytes: 0 },
  };
  return createPull(
    { registry: config },
    {
      ...{ layers: join(dir, 'layers'), images: join(dir, 'images'), spool: join(dir, 'spool') },
      layerSources: async () => sources,
    },
  );
}

const order = (alias: string, more: object = {}) =>
  images.create({ alias, cpuCount: 2, memoryMb: 256, diskSizeMb: 64, ...more });

async function ended(ids: BuildIds): Promise<BuildState> {
  for (;;) {
    const state = images.state(ids.templateId, ids.buildId, ALL);
    if (state.status !== 'building' && state.status !== 'waiting') return state;
    await systemClock.sleep(10);
  }
}

async function build(alias: string, request: ImageBuild): Promise<BuildState> {
  const ids = order(alias);
  images.start(ids, request);
  return await ended(ids);
}

async function pushImage(repository: string, config: object = {}): Promise<string> {
  const archives = [
    tar({ name: 'etc/' }, { name: 'etc/passwd', data: 'root:x:0:0::/root:/bin/sh\napp:x:4242:4242::/srv:/bin/sh\n' }),
    tar({ name: 'srv/' }, { name: 'srv/data', data: 'x'.repeat(50_000) }),
  ];
  const manifest = await registry.layout.image(
    archives.map((archive) => [archive, gzipSync(archive)] as const),
    { config },
  );
  await push({ base: registry.base, repository }, registry.layout, manifest, '1');
  return `${registry.registry.host}/${repository}:1`;
}

const code =
  (expected: string, message = /./) =>
  (error: unknown) => {
    assert.ok(error instanceof AenvError, String(error));
    assert.equal(error.code, expected, error.message);
    assert.match(error.message, message);
    return true;
  };

test('the name of a snapshot is not given to a template, which would hide it', () => {
  const size = { cpuCount: 1, memoryMb: 512, diskSizeMb: 64 };
  ledger.snapshots.add({
    ...{ templateId: 'snapshot000000000000', checkpointId: 'c1', name: { alias: 'ready', tag: 'v1' }, ...size },
    ...{ sandboxId: 'i1', createdAt: new Date(), envdVersion: '0.6.13', drives: [] },
    start: { envVars: {}, user: 'user', workdir: '/' },
  });
  assert.throws(() => order('ready'), code('invalid_request', /'ready' is the name of a snapshot/));
  ledger.snapshots.remove('snapshot000000000000');
  assert.equal(order('ready').templateId.length, 20);
});

test('an image of a registry becomes a template with what its configuration says', async () => {
  const image = await pushImage('configured', { Env: ['A=1', 'PATH=/bin'], User: 'app', WorkingDir: '/srv' });
  const ids = order('tools');
  assert.equal(images.state(ids.templateId, ids.buildId, ALL).status, 'waiting');
  assert.deepEqual(ledger.templates.list(), []);
  images.start(ids, { image, startCmd: 'serve', ready: { kind: 'command', cmd: 'check' } });
  assert.equal(images.state(ids.templateId, ids.buildId, ALL).status, 'building');
  const { status, entries, reason } = await ended(ids);
  assert.equal(status, 'ready', reason);
  const messages = entries.map(({ message }) => message);
  assert.match(messages[0] ?? '', new RegExp(`^looking for ${image}$`));
  assert.ok(
    messages.some((line) => /^layer 1 of 2, /.test(line)),
    messages.join('\n'),
  );
  assert.match(messages.at(-1) ?? '', /^tools is ready \(\d+\.\d s\)$/);

  const template = ledger.templates.byAlias('tools');
  assert.equal(template?.templateId, ids.templateId);
  assert.equal(template.buildId, ids.buildId);
  assert.deepEqual([template.cpuCount, template.memoryMb, template.diskSizeMb], [2, 256, 64]);
  assert.equal(template.source.layers.length, 3);
  assert.deepEqual(template.start, {
    envVars: { A: '1', PATH: '/bin' },
    user: 'app',
    workdir: '/srv',
    startCommand: { cmd: 'serve', user: 'app' },
    ready: { kind: 'command', cmd: 'check', user: 'app' },
  });
  assert.deepEqual(await readdir(join(dir, 'spool')).catch(() => []), []);
});

test('a second build of a name keeps the id of the template, and the first one stays until it is done', async () => {
  const image = await pushImage('again');
  const first = await build('again', { image });
  const ids = order('again');
  assert.equal(ids.templateId, first.templateId);
  assert.equal(ledger.templates.byAlias('again')?.buildId, first.buildId);
  images.start(ids, { image: `${registry.registry.host}/absent:1` });
  assert.equal((await ended(ids)).status, 'error');
  assert.equal(ledger.templates.byAlias('again')?.buildId, first.buildId);
  const third = await build('again', { image });
  assert.equal(ledger.templates.byAlias('again')?.buildId, third.buildId);
});

test('a build that fails tells the reason and leaves no template', async () => {
  const { templateId, status, reason, entries } = await build('gone', { image: `${registry.registry.host}/absent:1` });
  assert.equal(status, 'error');
  assert.match(reason ?? '', /absent/);
  assert.equal(entries.at(-1)?.level, 'error');
  assert.deepEqual(ledger.templates.list(), []);
  // What is left of it can be removed, once.
  assert.equal(images.forget(templateId), true);
  assert.equal(images.forget(templateId), false);
  const bad = await build('bad', { image: 'Not A Name' });
  assert.match(bad.reason ?? '', /not the name of an image/);
  const local = await build('local', { image: 'oci:/etc/ssl' });
  assert.match(local.reason ?? '', /files of the host are not read/);
});

test('one build at a time for a template, and each is started once', async () => {
  const gate = Promise.withResolvers<never>();
  images = service((request) => {
    request.signal.addEventListener('abort', () => gate.reject(request.signal.reason));
    return gate.promise;
  });
  const first = order('one');
  const second = order('one');
  assert.equal(second.templateId, first.templateId);
  images.start(first, { image: 'x' });
  assert.throws(() => images.start(first, { image: 'x' }), code('build_not_waiting'));
  assert.throws(() => images.start(second, { image: 'x' }), code('template_building', new RegExp(first.buildId)));
  assert.throws(() => images.start({ ...first, templateId: 'other' }, { image: 'x' }), code('template_not_found'));
  await images.close();
  const { status, reason } = images.state(first.templateId, first.buildId, ALL);
  assert.equal(status, 'error');
  assert.match(reason ?? '', /the daemon was stopped/);
});

test('builds of a daemon that was killed are marked as failed by the next one', async () => {
  images = service(() => new Promise(() => {}));
  const ids = order('cut');
  images.start(ids, { image: 'x' });
  images = service();
  const { status, reason } = images.state(ids.templateId, ids.buildId, ALL);
  assert.equal(status, 'error');
  assert.match(reason ?? '', /build it again/);
  assert.equal((await build('cut', { image: await pushImage('cut') })).status, 'ready');
});

test('a build may be given a limit of time', async () => {
  images = service(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  );
  const { status, reason } = await build('slow', { image: 'x', timeoutMs: 20 });
  assert.equal(status, 'error');
  assert.match(reason ?? '', /longer than 0\.02 s/);
});

test('a template that sandboxes use is not removed, and they are named', async () => {
  const { templateId } = await build('used', { image: await pushImage('used') });
  const sandboxId = 'i000000000000000used1';
  ledger.sandboxes.insert(fullRecord({ sandboxId, templateId, state: 'paused' }));
  assert.throws(() => images.remove('used'), code('template_in_use', new RegExp(sandboxId)));
  ledger.sandboxes.update(sandboxId, 'paused', { state: 'ended', endReason: 'killed', endedAt: new Date() });
  images.remove('used');
  assert.equal(ledger.templates.get(templateId), undefined);
  assert.throws(() => images.remove('used'), code('template_not_found'));
  // The name is free again, for a template of its own.
  assert.notEqual(order('used').templateId, templateId);
});

test('templates of the product are neither replaced nor removed', () => {
  assert.throws(() => order('base'), code('invalid_request', /base/));
  ledger.templates.put({
    ...{ templateId: 'b', buildId: 'b', aliases: ['base'], cpuCount: 1, memoryMb: 1, diskSizeMb: 1 },
    ...{ createdAt: new Date(), updatedAt: new Date(), lastSpawnedAt: null, spawnCount: 0, envdVersion: '1' },
    source: { imageDigest: 'd', layers: [] },
    start: { envVars: {}, user: 'user', workdir: '/' },
  });
  assert.throws(() => images.remove('base'), code('invalid_request', /base/));
});

test('an image that is booted without a template gets one without a name, once for each size', async () => {
  const image = await pushImage('cold', { Env: ['A=1'] });
  const sizes = { cpuCount: 1, memoryMb: 256, diskSizeMb: 64 };
  const first = await images.prepareCold(image, sizes);
  assert.match(first, /^[a-z0-9]{20}$/);
  assert.equal(await images.prepareCold(image, sizes), first);
  assert.notEqual(await images.prepareCold(image, { ...sizes, memoryMb: 512 }), first);
  const template = ledger.templates.get(first);
  assert.deepEqual([template?.aliases, template?.start.envVars, template?.diskSizeMb], [[], { A: '1' }, 64]);
  await assert.rejects(images.prepareCold(`${registry.registry.host}/absent:1`, sizes), code('image_not_found'));
  const second = (await images.prepareCold(image, { ...sizes, memoryMb: 512 })) ?? '';
  ledger.sandboxes.insert(fullRecord({ templateId: second }));
  // One has a sandbox, the other has none.
  assert.equal(removeUnusedColdTemplates(ledger, Date.now() - 60_000), 0);
  assert.equal(removeUnusedColdTemplates(ledger, Date.now() + 1), 1);
  assert.equal(ledger.templates.get(first), undefined);
  assert.ok(ledger.templates.get(second) !== undefined);
});
