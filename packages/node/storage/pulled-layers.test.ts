import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { push } from '@aenv/images/testing/push.ts';
import { RegistryFixture } from '@aenv/images/testing/registry-fixture.ts';
import { tar } from '@aenv/images/testing/tar.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { HomeUses } from '../assets/homes/home-uses.ts';
import { AssetLab, isThere } from '../assets/testing/asset-lab.ts';
import { filesOfTemplate } from '../daemon/assets.ts';
import { type Ledger, openLedger } from '../store/ledger.ts';
import { layerFiles } from '../templates/layers.ts';
import { NodeImageTemplates } from '../templates/pull/image-templates.ts';
import { createPull } from '../templates/pull/pull.ts';
import { Templates } from '../templates/service.ts';
import { NodeStorage } from './service.ts';

let registry: RegistryFixture;
let lab: AssetLab;
let ledger: Ledger;
let uses: HomeUses;
before(async () => {
  registry = await RegistryFixture.start();
  lab = await AssetLab.open();
  ledger = openLedger(lab.home);
  uses = new HomeUses({
    ...{ assetsDir: lab.places.root, home: lab.home, clock: systemClock },
    referred: () => ledger.templates.versions().flatMap((one) => filesOfTemplate({ assets: lab.places.root }, one)),
  });
});
after(async () => {
  ledger?.close();
  await lab?.[Symbol.asyncDispose]();
  await registry?.close();
});

const none = { bases: 0, chunks: 0, files: 0, freedBytes: 0, blockedBy: [] };

function storage(): NodeStorage {
  return new NodeStorage({
    ...{ assetsDir: lab.places.root, home: lab.home, uses, keepMs: 3_600_000, waitMs: 0 },
    templates: () => ledger.templates.versions(),
    own: { unnamedTemplates: () => 0, machines: async () => 0, snapshots: async () => none },
    ...{ clock: systemClock, log: silentLogger },
  });
}

function imageTemplates(): NodeImageTemplates {
  const { host } = registry.registry;
  const access = { search: [host], insecure: [host], mirrors: [], ca: [], dockerConfig: join(lab.folder, 'no.json') };
  const cache = { offlineAfterSeconds: 1, cacheBytes: 2 ** 30, cacheKeepFreeBytes: 0 };
  const config = { ...access, ...cache, completeLayers: false, completeAfterSeconds: 1 };
  const { layers, images } = lab.places;
  return new NodeImageTemplates({
    ...{ ledger, uses, reserved: [], envdVersion: '1', clock: systemClock, log: silentLogger },
    pull: createPull(
      { registry: config },
      { layers, images, spool: join(lab.folder, 'spool'), layerSources: async () => ({ registry: access, ...cache }) },
    ),
    builtin: { startBuiltin: () => assert.fail(), state: () => assert.fail() },
    templates: new Templates({ ledger: ledger.templates, clock: systemClock, namespace: 'default' }),
  });
}

/** An image of two layers, the lower one the same for all. */
async function pushImage(repository: string): Promise<string> {
  const archives = [
    tar({ name: 'etc/' }, { name: 'etc/passwd', data: 'root:x:0:0::/root:/bin/sh\n' }),
    tar({ name: repository, data: repository.repeat(20_000) }),
  ];
  const manifest = await registry.layout.image(archives.map((archive) => [archive, gzipSync(archive)] as const));
  await push({ base: registry.base, repository }, registry.layout, manifest, '1');
  return `${registry.registry.host}/${repository}:1`;
}

async function build(images: NodeImageTemplates, alias: string, image: string, tags?: readonly string[]) {
  const ids = images.create({ alias, tags, cpuCount: 1, memoryMb: 256, diskSizeMb: 64 });
  images.start(ids, { image });
  for (;;) {
    const { status, reason } = images.state(ids.templateId, ids.buildId, { offset: 0, limit: 0 });
    if (status === 'ready') return ids;
    assert.notEqual(status, 'error', reason);
    // A pull holds what it uses: nothing is collected under it.
    await storage()
      .collect({ all: true })
      .catch((error: unknown) => assert.equal(error instanceof AenvError && error.code, 'storage_busy'));
    await systemClock.sleep(5);
  }
}

test('layers of removed templates and versions are collected, those that others share stay, whatever is collected', async () => {
  const images = imageTemplates();
  try {
    await build(images, 'a', await pushImage('one'));
    await build(images, 'b', await pushImage('two'));
    await build(images, 'b', await pushImage('three'), ['v2']);
    const files = () => ledger.templates.versions().map(({ source }) => layerFiles(source));
    const [v2 = [], b = [], a = []] = files();
    assert.equal(new Set([...a, ...b, ...v2].map((path) => dirname(path))).size, 7);
    assert.deepEqual((await storage().collect({ all: true })).removed, []);
    await assert.rejects(storage().removeImage(`${registry.registry.host}/two:1`), /template b/);

    images.remove('a');
    const young = await storage().collect();
    assert.deepEqual(young.removed, []);
    const { removed } = await storage().collectImages();
    assert.deepEqual(removed.map(({ kind }) => kind).sort(), ['image', 'layer', 'layer']);
    for (const path of [...b, ...v2]) assert.ok(await isThere(path), path);

    const templates = new Templates({ ledger: ledger.templates, clock: systemClock, namespace: 'default' });
    assert.equal(templates.resolve('b:v2').source.layers.length, 3);
    templates.removeTags('b', ['v2']);
    assert.equal((await storage().collectImages()).removed.length, 3);
    for (const path of b) assert.ok(await isThere(path), path);
    // What was collected is made again when it is pulled again.
    await build(images, 'a', `${registry.registry.host}/one:1`);
    for (const path of files().flat()) assert.ok(await isThere(path), path);
  } finally {
    await images.close();
  }
});
