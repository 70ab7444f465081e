import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { digestOf } from '../testing/layout.ts';
import { push } from '../testing/push.ts';
import { bytesOf, RegistryFixture } from '../testing/registry-fixture.ts';
import { tar } from '../testing/tar.ts';
import { type ResolveImageOptions, resolveImage } from './resolve-image.ts';

let fixture: RegistryFixture;
let options: ResolveImageOptions;
const LINUX = { os: 'linux', architecture: 'amd64' };
const ARM = { os: 'linux', architecture: 'arm64', variant: 'v8' };
const DOCKER = 'application/vnd.docker';

before(async () => {
  fixture = await RegistryFixture.start();
  options = { client: fixture.client([fixture.registry.host]), platform: LINUX };
});
after(() => fixture.close());

const named = (name: string) => `${fixture.registry.host}/${name}`;
const to = (repository: string) => ({ base: fixture.base, repository });

test('an image of several layers comes by tag and by digest, each layer with its bytes', async () => {
  const { layout } = fixture;
  const layers = [tar({ name: 'a', data: 'one' }), tar({ name: 'b' }), tar()];
  const stored = [layers[0], gzipSync(layers[1] ?? ''), zstdCompressSync(layers[2] ?? '')];
  const pairs = layers.map((archive, at) => [archive, stored[at] ?? archive] as const);
  const manifest = await layout.image(pairs, { config: { Env: ['A=1'], Cmd: ['sh'] } });
  await push(to('multi/layer'), layout, manifest, 'v1');

  const image = await resolveImage(named('multi/layer:v1'), options);
  assert.equal(image.digest, manifest.digest);
  assert.equal(image.name, named(`multi/layer@${manifest.digest}`));
  assert.deepEqual(image.config.env, { A: '1' });
  assert.deepEqual(
    image.layers.map(({ diffId, form }) => [diffId, form]),
    layers.map((archive) => [digestOf(archive), 'tar']),
  );
  for (const [at, layer] of image.layers.entries()) assert.deepEqual(await bytesOf(layer.open()), stored[at]);
  assert.deepEqual(image.layers[1]?.remote, {
    host: fixture.registry.host,
    repository: 'multi/layer',
    digest: digestOf(stored[1] ?? Buffer.alloc(0)),
    size: stored[1]?.length,
  });
  assert.deepEqual((await resolveImage(image.name, options)).config, image.config);
});

test('an index within an index leads to the image of the platform, attestations are passed over', async () => {
  const { layout } = fixture;
  const ours = await layout.image([tar({ name: 'ours' })]);
  const arm = await layout.image([], { platform: ARM });
  const unknown = await layout.image([], { platform: { os: 'unknown', architecture: 'unknown' } });
  const inner = await layout.nested([
    { ...unknown, platform: { os: 'unknown', architecture: 'unknown' } },
    { ...arm, platform: ARM },
    { ...ours, platform: LINUX },
  ]);
  await push(to('nested'), layout, await layout.nested([inner]), 'latest');
  assert.equal((await resolveImage(named('nested'), options)).digest, ours.digest);
  assert.equal((await resolveImage(named('nested'), { ...options, platform: ARM })).digest, arm.digest);
  await assert.rejects(
    resolveImage(named('nested'), { ...options, platform: { os: 'linux', architecture: 's390x' } }),
    {
      code: 'image_platform_missing',
      message: /no image for linux\/s390x in 127.*nested:latest: it has linux\/amd64, linux\/arm64\/v8$/,
    },
  );
});

test("Docker's own media types are as good as OCI's", async () => {
  const { layout } = fixture;
  const archive = tar({ name: 'a' });
  const config = await layout.json(
    { ...LINUX, config: { User: 'app' }, rootfs: { type: 'layers', diff_ids: [digestOf(archive)] } },
    `${DOCKER}.container.image.v1+json`,
  );
  const layer = await layout.blob(gzipSync(archive), `${DOCKER}.image.rootfs.diff.tar.gzip`);
  const type = `${DOCKER}.distribution.manifest.v2+json`;
  const manifest = await layout.json({ schemaVersion: 2, mediaType: type, config, layers: [layer] }, type);
  const listType = `${DOCKER}.distribution.manifest.list.v2+json`;
  const list = await layout.json(
    { schemaVersion: 2, mediaType: listType, manifests: [{ ...manifest, platform: LINUX }] },
    listType,
  );
  await push(to('docker'), layout, list, 'v2');
  const image = await resolveImage(named('docker:v2'), options);
  assert.equal(image.config.user, 'app');
  assert.equal((await bytesOf(image.layers[0]?.open())).length, layer.size);
});

test('a layer that is overlaybd already says so, one of turboOCI is refused by name', async () => {
  const { layout } = fixture;
  const prefix = 'containerd.io/snapshot/overlaybd';
  const blob = await layout.blob(Buffer.alloc(3000, 'x'), 'application/vnd.oci.image.layer.v1.tar');
  const imageOf = async (annotations: Record<string, string>) => {
    const config = await layout.json(
      { ...LINUX, rootfs: { type: 'layers', diff_ids: [blob.digest] } },
      'application/vnd.oci.image.config.v1+json',
    );
    return layout.json(
      { schemaVersion: 2, config, layers: [{ ...blob, annotations }] },
      'application/vnd.oci.image.manifest.v1+json',
    );
  };
  const native = { [`${prefix}/blob-digest`]: blob.digest, [`${prefix}/blob-size`]: String(blob.size) };
  await push(to('native'), layout, await imageOf(native), 'ok');
  const image = await resolveImage(named('native:ok'), options);
  assert.deepEqual(
    image.layers.map(({ form, digest }) => [form, digest]),
    [['overlaybd', blob.digest]],
  );
  await push(to('native'), layout, await imageOf({ ...native, [`${prefix}/version`]: '0.1.0-turbo.ociv1' }), 'turbo');
  await assert.rejects(resolveImage(named('native:turbo'), options), { code: 'image_invalid', message: /turboOCI/ });
  await push(to('native'), layout, await imageOf({ ...native, [`${prefix}/blob-size`]: '1' }), 'lie');
  await assert.rejects(resolveImage(named('native:lie'), options), { code: 'image_invalid', message: /another/ });
});

test('what is not there is told apart from a registry that is not there', async () => {
  await assert.rejects(resolveImage(named('nothing:here'), options), {
    code: 'image_not_found',
    message: /nothing.*here.*(NAME|MANIFEST)_UNKNOWN/,
  });
  const down = 'localhost:9/x';
  await assert.rejects(resolveImage(down, options), {
    code: 'registry_unavailable',
    message: /localhost:9: nothing listens/,
  });
});

test('a name without a host is found in the first search registry that has it, but never past one that is down', async () => {
  const { layout, registry } = fixture;
  const empty = await fixture.front();
  empty.rule = (exchange) => exchange.reply(404);
  await push(to('only/here'), layout, await layout.image([]), 'latest');
  const search = (...hosts: string[]) => fixture.client([registry.host, empty.host], { search: hosts });
  const find = (...hosts: string[]) => resolveImage('only/here', { ...options, client: search(...hosts) });
  assert.match((await find(empty.host, registry.host)).name, new RegExp(`^${registry.host}/only/here@`));
  assert.ok(empty.matching(/only\/here/).length > 0);
  await assert.rejects(find(empty.host), { code: 'image_not_found' });
  await assert.rejects(find('localhost:9', registry.host), { code: 'registry_unavailable' });
  await assert.rejects(resolveImage('no/where', { ...options, client: search(empty.host, registry.host) }), {
    code: 'image_not_found',
    message: /none of the search registries: 127.*; 127/,
  });
});

test('a registry that is not among the allowed ones is not asked', async () => {
  const front = await fixture.front();
  const client = fixture.client([front.host], { allowed: [fixture.registry.host] });
  await assert.rejects(resolveImage(`${front.host}/a`, { ...options, client }), { code: 'forbidden' });
  assert.equal(front.seen.length, 0);
});
