import assert from 'node:assert/strict';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { ensureBaseImage } from '@aenv/images/base/build.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { type OciImage, readOciLayout } from '../oci/layout.ts';
import { fsck } from '../testing/ext4.ts';
import { flatDisk, listDisk } from '../testing/flat-disk.ts';
import { TestLayout } from '../testing/layout.ts';
import { type TestMember, tar } from '../testing/tar.ts';
import { TORTURE } from '../testing/torture.ts';
import { differences, listTree, type TreeListing } from '../testing/tree-listing.ts';
import { archiveOf } from './archive.ts';
import { convertImage } from './convert.ts';

/** The trees that the kernel shows of converted images, beside those of programs that know nothing of this writer. */
let top = '';

before(async () => {
  top = await mkdtemp(join(tmpdir(), 'images-same-'));
});

after(async () => {
  await rm(top, { recursive: true, force: true });
});

/** The layers of an image, without the start state. */
async function converted(image: OciImage, sizeBytes?: number): Promise<TreeListing> {
  const size = sizeBytes === undefined ? {} : { sizeBytes };
  const { layers } = await convertImage(image, { layersDir: join(top, 'layers'), log: silentLogger, ...size });
  await using complete = await flatDisk(layers);
  await fsck(complete.path);
  await using plain = await flatDisk(layers.slice(0, -1));
  await fsck(plain.path);
  return await listDisk(plain.path);
}

async function layoutOf(name: string, layers: readonly (readonly TestMember[])[]): Promise<TestLayout> {
  const layout = await TestLayout.in(join(top, name));
  const archives = layers.map((members) => tar(...members));
  const manifest = await layout.image(
    archives.map((archive) => [archive, gzipSync(archive)] as const),
    {
      layerType: 'application/vnd.oci.image.layer.v1.tar+gzip',
    },
  );
  await layout.index({ ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'test' } });
  return layout;
}

async function umoci(layout: TestLayout): Promise<TreeListing> {
  const bundle = `${layout.dir}-bundle`;
  await run(['umoci', 'unpack', '--image', `${layout.dir}:test`, bundle], { timeoutMs: 10 * 60_000 });
  return listTree(join(bundle, 'rootfs'));
}

test('a Debian root is what GNU tar makes of it', { timeout: 20 * 60_000 }, async () => {
  // In the cache of an installed aenv; where it is not, it is made, which takes minutes.
  const assetsDir = process.env.AENV_ASSETS ?? '/var/lib/aenv/assets';
  const { layoutDir } = await ensureBaseImage({ assetsDir, log: silentLogger });
  const image = await readOciLayout(layoutDir);
  const root = join(top, 'debian');
  await mkdir(root);
  for (const [at, layer] of image.layers.entries()) {
    const archive = join(top, `${at}.tar`);
    await pipeline(archiveOf(layer), createWriteStream(archive));
    const flags = ['--numeric-owner', '--same-permissions', '--xattrs', '--xattrs-include=*'];
    await run(['tar', '-C', root, ...flags, '-xf', archive], { timeoutMs: 10 * 60_000 });
  }
  const expected = await listTree(root);
  assert.ok(expected.size > 5000);
  assert.deepEqual(differences(await converted(image), expected), []);
});

for (const [name, { layers, sizeBytes }] of Object.entries(TORTURE)) {
  test(`${name}: what umoci makes of it`, { timeout: 20 * 60_000 }, async () => {
    const layout = await layoutOf(name, layers);
    const image = await readOciLayout(layout.dir, { platform: { os: 'linux', architecture: 'amd64' } });
    assert.deepEqual(differences(await converted(image, sizeBytes), await umoci(layout)), []);
    assert.deepEqual(
      (await readdir(join(top, 'layers'))).filter((entry) => entry.startsWith('.')),
      [],
    );
  });
}

test('a kernel that uses the disk leaves a clean one', { timeout: 10 * 60_000 }, async () => {
  const members = Array.from({ length: 4000 }, (_, at) => ({
    name: `large/a name of some length, number ${at}`,
    data: 'x',
  }));
  const layout = await layoutOf('used', [members, [{ name: 'large/one', data: 'more' }]]);
  const image = await readOciLayout(layout.dir, { platform: { os: 'linux', architecture: 'amd64' } });
  const options = { layersDir: join(top, 'layers'), log: silentLogger, sizeBytes: 256 * 2 ** 20 };
  await using disk = await flatDisk((await convertImage(image, options)).layers);
  const mount = join(top, 'mount');
  await mkdir(mount);
  const script = fileURLToPath(new URL('../testing/use-disk.ts', import.meta.url));
  await run(['unshare', '--mount', process.execPath, script, disk.path, mount, 'large'], { timeoutMs: 5 * 60_000 });
  await fsck(disk.path);
});
