import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { decompress } from '../layers/decompress.ts';
import { readOciLayout } from '../oci/layout.ts';
import { hostPlatform } from '../oci/platform.ts';
import { writeImage } from '../oci/write-layout.ts';
import { readTar } from '../tar/reader.ts';
import { ensureDerivedImage } from './derived-image.ts';
import { installedPackages } from './dpkg-status.ts';
import { layerAsset } from './layer-asset.ts';

const EPOCH = 1_000_000_000;
let assetsDir: string;
before(async () => {
  assetsDir = await mkdtemp(join(tmpdir(), 'aenv-derived-'));
});
after(() => rm(assetsDir, { recursive: true, force: true }));

/** A layer with these files. */
const layer = (title: string, files: Readonly<Record<string, string>>) =>
  layerAsset({ assetsDir, title, inputs: { title, files }, epoch: EPOCH, log: silentLogger }, async (root) => {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(root, path, '..'), { recursive: true });
      await writeFile(join(root, path), content);
      await chmod(join(root, path), 0o755);
    }
  });

test('a layer is made once for its inputs, has no times younger than it may, and its modes', async () => {
  const first = await layer('a', { 'usr/bin/x': 'program' });
  const made = (await stat(first.dir)).ino;
  assert.deepEqual(await layer('a', { 'usr/bin/x': 'program' }), first);
  assert.equal((await stat(first.dir)).ino, made, 'only its time of use is new');
  assert.notEqual((await layer('a', { 'usr/bin/x': 'other' })).digest, first.digest);
  const blob = await readFile(join(first.dir, first.digest.slice('sha256:'.length)));
  assert.equal(blob.length, first.size);
  const seen = [];
  for await (const { entry } of readTar(
    decompress(
      (async function* () {
        yield blob;
      })(),
    ),
  )) {
    assert.equal(entry.mtime.seconds, EPOCH);
    seen.push([entry.name, entry.mode & 0o777]);
  }
  assert.deepEqual(seen.at(-1), ['./usr/bin/x', 0o755]);
});

test('an image of another one and further layers shares their files, and tells what the one below has installed', async () => {
  const status = 'Package: libc6\nStatus: install ok installed\n\nPackage: gone\nStatus: deinstall ok config-files\n';
  const below = await layer('below', { 'var/lib/dpkg/status': status, 'etc/a': 'a' });
  const baseDir = join(assetsDir, 'base');
  await mkdir(baseDir);
  await writeImage(baseDir, [below], { platform: hostPlatform(), config: {}, created: '2026-01-01T00:00:00Z' });
  assert.deepEqual([...(await installedPackages(baseDir))], ['libc6']);

  const top = await layer('top', { 'etc/b': 'b' });
  const options = { assetsDir, baseDir, layers: [top], config: { User: 'user', Env: ['A=b'] }, epoch: EPOCH };
  const image = await ensureDerivedImage(options);
  assert.deepEqual(await ensureDerivedImage(options), image);
  const { layers, config } = await readOciLayout(image.layoutDir);
  assert.deepEqual(
    layers.map(({ digest, diffId }) => [digest, diffId]),
    [below, top].map(({ digest, diffId }) => [digest, diffId]),
  );
  assert.deepEqual([config.user, config.env], ['user', { A: 'b' }]);
  const blob = (dir: string) => stat(join(dir, top.digest.slice('sha256:'.length)));
  assert.equal((await blob(join(image.layoutDir, 'blobs/sha256'))).ino, (await blob(top.dir)).ino);
  const other = await ensureDerivedImage({ ...options, config: {} });
  assert.notEqual(other.digest, image.digest);
});
