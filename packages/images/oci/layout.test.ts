import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { TestLayout } from '../testing/layout.ts';
import { tar } from '../testing/tar.ts';
import { type OciLayer, readOciLayout } from './layout.ts';

let dir = '';
let layout: TestLayout;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-layout-'));
  layout = await TestLayout.in(dir);
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

const LINUX = { os: 'linux', architecture: 'amd64' };
const read = (options = {}) => readOciLayout(dir, { platform: LINUX, ...options });
const refused = (message: RegExp, options = {}) => assert.rejects(read(options), { code: 'image_invalid', message });

async function bytesOf(layer: OciLayer | undefined): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of layer?.open() ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('an image comes with its digest, its configuration and its layers in order', async () => {
  const layers = [tar({ name: 'a' }), tar({ name: 'b' })];
  const config = { Env: ['A=1', 'B=x=y', 'EMPTY=', 'UNSET'], WorkingDir: 'w', User: 'app:grp', Cmd: null };
  const manifest = await layout.image(layers, { config: { ...config, ExposedPorts: { '80/tcp': {} } } });
  await layout.index(manifest);
  const image = await read();
  assert.equal(image.digest, manifest.digest);
  assert.deepEqual(image.config, {
    env: { A: '1', B: 'x=y', EMPTY: '' },
    workingDir: '/w',
    user: 'app:grp',
    entrypoint: [],
    cmd: [],
    exposedPorts: ['80/tcp'],
    labels: {},
  });
  assert.equal(image.layers.length, 2);
  assert.deepEqual(await bytesOf(image.layers[1]), layers[1]);
});

test('indexes within indexes are followed, attestations and other platforms passed over', async () => {
  const arm = await layout.image([], { platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } });
  const ours = await layout.image([]);
  const attestation = { ...arm, platform: { os: 'unknown', architecture: 'unknown' } };
  const inner = await layout.nested([
    attestation,
    { ...arm, platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } },
    { ...ours, platform: LINUX },
  ]);
  await layout.index(await layout.nested([inner]));
  assert.equal((await read()).digest, ours.digest);
  assert.equal((await read({ platform: { os: 'linux', architecture: 'arm64' } })).digest, arm.digest);
});

test('when no platform fits, those that are there are listed', async () => {
  const arm = await layout.image([], { platform: { os: 'linux', architecture: 'arm', variant: 'v7' } });
  const newer = await layout.image([], { platform: { os: 'linux', architecture: 'amd64', variant: 'v3' } });
  const attestation = { ...arm, platform: { os: 'unknown', architecture: 'unknown' } };
  await layout.index(await layout.nested([arm, newer, attestation]));
  await assert.rejects(read(), {
    code: 'image_platform_missing',
    message: /no image for linux\/amd64 in the layout: it has linux\/amd64\/v3, linux\/arm\/v7$/,
  });
});

test('an image is chosen by its reference when one is asked for', async () => {
  const first = await layout.image([], { config: { User: 'a' } });
  const second = await layout.image([], { config: { User: 'b' } });
  const named = (name: string) => ({ annotations: { 'org.opencontainers.image.ref.name': name } });
  await layout.index({ ...first, ...named('v1') }, { ...second, ...named('v2') });
  assert.equal((await read({ ref: 'v2' })).config.user, 'b');
  assert.equal((await read()).config.user, 'a');
  await refused(/it holds no image/, { ref: 'v3' });
});

test('a damaged blob is refused, whichever it is', async () => {
  const archive = tar({ name: 'a' });
  const manifest = await layout.image([archive]);
  await layout.index(manifest);
  const image = await read();
  const blob = layout.blobPath(image.layers[0]?.digest ?? '');
  await writeFile(blob, Buffer.concat([archive.subarray(0, -1), Buffer.from('x')]));
  await assert.rejects(bytesOf(image.layers[0]), {
    code: 'image_invalid',
    message: /has the digest sha256:.* instead of/,
  });
  await appendFile(blob, 'more');
  await assert.rejects(bytesOf(image.layers[0]), { code: 'image_invalid', message: /bytes instead of/ });
  await unlink(blob);
  await assert.rejects(bytesOf(image.layers[0]), { code: 'image_invalid', message: /is missing/ });
  await appendFile(layout.blobPath(manifest.digest), ' ');
  await refused(/bytes instead of/);
});

test('documents that are no documents of this kind are refused with the member that is wrong', async () => {
  await refused(/index.json is missing/);
  await writeFile(join(dir, 'index.json'), 'nonsense');
  await refused(/index.json is no JSON/);
  await writeFile(join(dir, 'index.json'), '{"schemaVersion":2,"manifests":[{"digest":3}]}');
  await refused(/index.json: manifests.0/);
  await writeFile(join(dir, 'oci-layout'), '{"imageLayoutVersion":"2.0.0"}');
  await refused(/oci-layout: imageLayoutVersion/);
});

test('digests that are paths lead nowhere', async () => {
  const manifest = await layout.image([]);
  await layout.index({ ...manifest, digest: 'sha256:../../../../etc/passwd' });
  await refused(/not a digest/);
});

test('what is not supported is refused by name', async () => {
  const old = await layout.json({}, 'application/vnd.docker.distribution.manifest.v1+prettyjws');
  await layout.index(old);
  await refused(/Docker schema 1/);
  const encrypted = await layout.image([tar({ name: 'a' })], {
    layerType: 'application/vnd.oci.image.layer.v1.tar+encrypted',
  });
  await layout.index(encrypted);
  await refused(/unsupported type application.*encrypted/);
  let index = await layout.nested([]);
  for (let depth = 0; depth < 8; depth++) index = await layout.nested([index]);
  await layout.index(index);
  await refused(/nested deeper than/);
  await layout.index({ ...encrypted, size: 2 ** 30 });
  await refused(/JSON document of 1073741824 bytes/);
});
