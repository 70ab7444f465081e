import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { run } from '@aenv/platform/process/run.ts';
import { digestOf, TestLayout } from '../testing/layout.ts';
import { bytesOf } from '../testing/registry-fixture.ts';
import { type TestMember, tar } from '../testing/tar.ts';
import { readDockerArchive } from './docker-archive.ts';
import { readOciArchive } from './oci-archive.ts';

const LINUX = { os: 'linux', architecture: 'amd64' };
const LAYERS = [tar({ name: 'a', data: 'one' }), tar({ name: 'b', data: 'two' })] as const;

let dir = '';
let file = '';

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-archive-'));
  file = join(dir, 'image.tar');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const CONFIG = Buffer.from(
  JSON.stringify({
    ...LINUX,
    config: { Env: ['A=1'] },
    rootfs: { type: 'layers', diff_ids: LAYERS.map((layer) => digestOf(layer)) },
  }),
);

/** An archive as `docker save` writes it. */
function saved(change: { manifest?: unknown; members?: TestMember[] } = {}): Buffer {
  const manifest = [{ Config: 'c.json', RepoTags: ['me/image:1'], Layers: ['1/layer.tar', '2/layer.tar'] }];
  return tar(
    { name: 'c.json', data: CONFIG },
    { name: '1/' },
    { name: '1/layer.tar', data: LAYERS[0] },
    { name: '2/layer.tar', data: LAYERS[1] },
    { name: 'manifest.json', data: JSON.stringify(change.manifest ?? manifest) },
    ...(change.members ?? []),
  );
}

async function docker(data: Buffer, options = {}) {
  await writeFile(file, data);
  return readDockerArchive(file, { platform: LINUX, ...options });
}

test('an archive of docker save gives its image, each layer verified', async () => {
  const image = await docker(saved());
  assert.equal(image.digest, digestOf(CONFIG));
  assert.deepEqual(image.config.env, { A: '1' });
  for (const [at, layer] of image.layers.entries()) assert.deepEqual(await bytesOf(layer.open()), LAYERS[at]);
  assert.equal((await docker(saved(), { ref: 'me/image:1' })).digest, image.digest);
});

test('layers may be compressed, and links to layers that are there already', async () => {
  const entry = (Layers: string[]) => ({ manifest: [{ Config: 'c.json', RepoTags: null, Layers }] });
  const image = await docker(
    saved({
      ...entry(['x/layer.tar', 'y/layer.tar']),
      members: [
        { name: 'x/layer.tar', flag: '2', linkName: '../1/layer.tar' },
        { name: 'y/layer.tar', data: gzipSync(LAYERS[1]) },
      ],
    }),
  );
  for (const [at, layer] of image.layers.entries()) assert.deepEqual(await bytesOf(layer.open()), LAYERS[at]);
});

test('a link that leads around or out of the archive leads nowhere', async () => {
  for (const linkName of ['layer.tar', '../../../../etc/passwd', '/etc/passwd']) {
    const manifest = [{ Config: 'c.json', Layers: ['x/layer.tar', '2/layer.tar'] }];
    const members = [{ name: 'x/layer.tar', flag: '2', linkName }];
    await assert.rejects(docker(saved({ manifest, members })), { code: 'image_invalid', message: /is missing/ });
  }
});

test('a layer that is not what the configuration says is refused at its end', async () => {
  const manifest = [{ Config: 'c.json', Layers: ['2/layer.tar', '1/layer.tar'] }];
  const image = await docker(saved({ manifest }));
  await assert.rejects(bytesOf(image.layers[0]?.open()), { code: 'image_invalid', message: /instead of/ });
});

test('one of several images is chosen by its name', async () => {
  const one = { Config: 'c.json', Layers: ['1/layer.tar', '2/layer.tar'] };
  const manifest = [
    { ...one, RepoTags: ['a:1'] },
    { ...one, RepoTags: ['b:1'] },
  ];
  await assert.rejects(docker(saved({ manifest })), { code: 'image_invalid', message: /several images: a:1, b:1/ });
  assert.equal((await docker(saved({ manifest }), { ref: 'b:1' })).layers.length, 2);
  await assert.rejects(docker(saved({ manifest }), { ref: 'c:1' }), { code: 'image_not_found', message: /a:1, b:1/ });
  await assert.rejects(docker(saved(), { platform: { os: 'linux', architecture: 'arm64' } }), {
    code: 'image_platform_missing',
  });
});

test('a layout in an archive reads like one in a folder, also as GNU tar writes it', async () => {
  const layout = await TestLayout.in(join(dir, 'layout'));
  await layout.index({
    ...(await layout.image(LAYERS)),
    annotations: { 'org.opencontainers.image.ref.name': 'v1' },
  });
  await run(['tar', '-C', layout.dir, '-cf', file, '.']);
  const image = await readOciArchive(file, { platform: LINUX, ref: 'v1' });
  assert.deepEqual(await bytesOf(image.layers[1]?.open()), LAYERS[1]);
  await run(['tar', '-C', layout.dir, '--format=pax', '-cf', file, ...(await readdir(layout.dir))]);
  assert.equal((await readOciArchive(file, { platform: LINUX })).digest, image.digest);
});

test('what is no such archive is refused with what helps', async () => {
  const refused = (message: RegExp) => ({ code: 'image_invalid', message });
  await assert.rejects(readOciArchive(file), refused(/cannot be read/));
  await assert.rejects(readOciArchive(dir), refused(/cannot be read/));
  await assert.rejects(docker(gzipSync(saved())), (error: Error) => {
    assert.match(error.message, /it is compressed/);
    return 'remediation' in error && /gunzip/.test(String(error.remediation));
  });
  await assert.rejects(docker(Buffer.from('x'.repeat(600))), refused(/checksum/));
  await assert.rejects(docker(Buffer.alloc(0)), refused(/manifest.json.* is missing/));
  await assert.rejects(docker(saved().subarray(0, 2000)), refused(/ends in the middle|is missing/));
  await assert.rejects(docker(saved({ manifest: { Config: 1 } })), refused(/manifest.json/));
  await assert.rejects(docker(saved({ manifest: [{ Config: '../c.json', Layers: [] }] })), refused(/is missing/));
  await assert.rejects(docker(saved({ manifest: [{ Config: 'c.json', Layers: [] }] })), refused(/2 layers/));
});

test('an archive that changes after it was read is noticed', async () => {
  const image = await docker(saved());
  const data = await readFile(file);
  await writeFile(file, Buffer.concat([data.subarray(0, 2048), Buffer.alloc(data.length - 2048, 1)]));
  await assert.rejects(bytesOf(image.layers[0]?.open()), { code: 'image_invalid' });
});
