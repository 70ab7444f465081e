import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fileLayer, LayerPool } from '@aenv/block/layers/stack/pool.ts';
import { createWritableLayer } from '@aenv/block/layers/writable/open.ts';
import { wrapperHeader, wrapperTrailer } from '@aenv/block/tar-wrapper/wrapper.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { pullDrive } from '../drive/pull-drive.ts';
import { BlobCache } from '../lazy/blob-cache.ts';
import { RemoteLayers } from '../lazy/remote-layers.ts';
import type { Exchange } from '../testing/fault-front.ts';
import { flatDisk } from '../testing/flat-disk.ts';
import { digestOf, type TestDescriptor } from '../testing/layout.ts';
import { push } from '../testing/push.ts';
import { RegistryFixture } from '../testing/registry-fixture.ts';
import { tar } from '../testing/tar.ts';
import type { PulledImage, PullOptions, PullProgress } from './contract.ts';
import { pullImage } from './pull-image.ts';

const LINUX = { os: 'linux', architecture: 'amd64' };
const DISK = 64 * 2 ** 20;

let fixture: RegistryFixture;
let dir = '';

before(async () => {
  fixture = await RegistryFixture.start();
});
after(() => fixture.close());
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-pull-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function behind(rule: (exchange: Exchange) => unknown = () => {}) {
  const front = await fixture.front();
  front.rule = async (exchange) => {
    await rule(exchange);
  };
  const options: PullOptions = {
    client: fixture.client([front.host]),
    platform: LINUX,
    layersDir: join(dir, 'layers'),
    spoolDir: join(dir, 'spool'),
    sizeBytes: DISK,
    log: silentLogger,
  };
  return { front, options };
}

async function read({ layers }: PulledImage, offset: number, length: number): Promise<Buffer> {
  const paths = layers.flatMap((layer) => (layer.kind === 'file' ? [layer.path] : []));
  const stack = await new LayerPool().openStack(paths.map(fileLayer));
  const target = Buffer.alloc(length);
  await stack.read(target, offset);
  await stack.close();
  return target;
}

async function pushFiles(repository: string): Promise<void> {
  const archives = [
    tar({ name: 'etc/' }, { name: 'etc/a', data: 'one' }),
    tar({ name: 'etc/b', data: 'x'.repeat(50_000) }),
    tar({ name: 'c', data: 'three' }),
  ];
  const manifest = await fixture.layout.image(
    archives.map((archive) => [archive, gzipSync(archive)] as const),
    { config: { Env: ['A=1'], WorkingDir: '/etc' } },
  );
  await push({ base: fixture.base, repository }, fixture.layout, manifest, 'latest');
}

test('an image of files becomes a disk, its layers fetched once and known the next time', async () => {
  await pushFiles('files');
  const { front, options } = await behind();
  const seen: PullProgress[] = [];
  const image = await pullImage(`${front.host}/files`, { ...options, onProgress: (progress) => seen.push(progress) });
  assert.equal(image.sizeBytes, DISK);
  assert.equal(image.prepared, true);
  assert.deepEqual([image.start.workdir, image.start.envVars], ['/etc', { A: '1' }]);
  assert.equal(image.layers.length, 4);
  assert.ok(image.layers.every((layer) => layer.kind === 'file'));
  // The magic of an ext4 superblock.
  assert.equal((await read(image, 1024, 512)).readUInt16LE(56), 0xef53);
  const blobs = front.matching(/blobs\/sha256/).length;
  assert.equal(blobs, 4);
  const last = seen.at(-1);
  assert.ok(last?.phase === 'layers' && last.doneBytes === last.totalBytes && last.fetchedBytes === last.totalBytes);
  assert.deepEqual(seen[0], { phase: 'resolving', name: `${front.host}/files` });

  const again = await pullImage(`${front.host}/files`, options);
  assert.deepEqual(again, image);
  assert.equal(front.matching(/blobs\/sha256/).length, blobs + 1, 'only the configuration');
  assert.deepEqual(await readdir(options.spoolDir), []);
});

test('a pull that fails leaves nothing half-made, and the layers that were done', async () => {
  await pushFiles('broken');
  const top = gzipSync(tar({ name: 'c', data: 'three' }));
  const { front, options } = await behind((exchange) => {
    if (exchange.url.pathname.endsWith(digestOf(top)))
      return exchange.relay({ change: () => Buffer.alloc(top.length) });
  });
  await assert.rejects(pullImage(`${front.host}/broken`, options), { code: /digest_mismatch|image_invalid/ });
  assert.deepEqual(await readdir(options.spoolDir), []);
  assert.equal((await readdir(options.layersDir)).length, 2);
  front.rule = () => {};
  await pullImage(`${front.host}/broken`, options);
  assert.equal((await readdir(options.layersDir)).length, 4);
});

/** Two block layers, one above the other, as a registry has them: bytes of `1` at 0, then of `2` at 8192. */
async function pushBlocks(repository: string): Promise<TestDescriptor[]> {
  const { layout } = fixture;
  const layers: TestDescriptor[] = [];
  let below: string | undefined;
  for (const [at, fill] of [1, 2].entries()) {
    const uuid = `00000000-0000-4000-8000-00000000000${at}`;
    const folder = join(dir, `upper-${at}`);
    const upper = await createWritableLayer({
      ...{ folder, pendingPath: join(dir, `pending-${at}`), uuid, virtualSize: DISK },
      ...(below === undefined ? {} : { parentUuid: below }),
    });
    upper.write(Buffer.alloc(4096, fill), at * 8192);
    const frozen = upper.freeze();
    const { path } = await frozen.durable;
    await frozen.close();
    const data = await readFile(path);
    const blob = Buffer.concat([wrapperHeader(data.length), data, wrapperTrailer(data.length)]);
    const stored = await layout.blob(blob, 'application/vnd.oci.image.layer.v1.tar');
    const prefix = 'containerd.io/snapshot/overlaybd';
    const annotations = { [`${prefix}/blob-digest`]: stored.digest, [`${prefix}/blob-size`]: String(stored.size) };
    layers.push({ ...stored, annotations });
    below = uuid;
  }
  const config = await layout.json(
    { ...LINUX, config: { User: '1000' }, rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) } },
    'application/vnd.oci.image.config.v1+json',
  );
  const type = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = await layout.json({ schemaVersion: 2, mediaType: type, config, layers }, type);
  await push({ base: fixture.base, repository }, layout, manifest, 'latest');
  return layers;
}

async function withRemote(options: PullOptions, use: (remoteLayers: RemoteLayers) => Promise<void>): Promise<void> {
  const cache = await BlobCache.start({
    ...{ root: join(dir, 'parts'), capacityBytes: 2 ** 30, keepFreeBytes: 0, offlineAfterMs: 2000, log: silentLogger },
  });
  const remoteLayers = new RemoteLayers(options.client, cache);
  try {
    await use(remoteLayers);
  } finally {
    await cache.close();
  }
}

test('an image of blocks stays in its registry, and is read from there', async () => {
  await pushBlocks('blocks');
  const { front, options } = await behind();
  await withRemote(options, async (remoteLayers) => {
    const image = await pullImage(`${front.host}/blocks`, { ...options, remoteLayers });
    assert.equal(image.sizeBytes, DISK);
    assert.equal(image.prepared, false);
    assert.equal(image.start.user, '1000');
    const refs = image.layers.map((layer) => {
      assert.ok(layer.kind === 'remote');
      return remoteLayers.ref(layer.remote);
    });
    const stack = await new LayerPool().openStack(refs);
    const target = Buffer.alloc(16_384, 9);
    await stack.read(target, 0);
    await stack.close();
    const expected = [1, 0, 2, 0].map((fill) => Buffer.alloc(4096, fill));
    assert.ok(target.equals(Buffer.concat(expected)));
    for (const { headers } of front.matching(/blobs\/sha256/).slice(1)) assert.match(headers.range ?? '', /^bytes=/);
    for (const layer of image.layers) {
      if (layer.kind === 'remote') await remoteLayers.complete(layer.remote, new AbortController().signal);
      assert.ok(remoteLayers.isVerified(layer.digest));
    }
  });
});

test('an image of blocks is fetched whole where parts are not served, or not wanted', async () => {
  const layers = await pushBlocks('whole');
  const { front, options } = await behind((exchange) => exchange.relay({ ignoreRange: true }));
  await withRemote(options, async (remoteLayers) => {
    const image = await pullImage(`${front.host}/whole`, { ...options, remoteLayers });
    assert.deepEqual(
      image.layers.map(({ kind, digest }) => [kind, digest]),
      layers.map(({ digest }) => ['file', digest]),
    );
    assert.equal((await read(image, 8192, 1))[0], 2);
    assert.deepEqual((await pullImage(`${front.host}/whole`, options)).layers, image.layers);
  });
});

test('an image becomes a drive with a label and without a start state; blocks that are no file system are refused', async () => {
  await pushFiles('drive');
  await pushBlocks('no-ext4');
  const { front, options } = await behind();
  const first = await pullDrive(`${front.host}/drive`, { ...options, label: 'aenv-drive-1' });
  const second = await pullDrive(`${front.host}/drive`, { ...options, label: 'aenv-drive-2' });
  assert.equal(first.layers.length, 4, 'three of the image, and the label');
  assert.deepEqual(second.layers.slice(0, 3), first.layers.slice(0, 3), 'all but the label is shared');
  assert.equal((await readdir(options.layersDir)).length, 5);
  const paths = second.layers.flatMap((layer) => (layer.kind === 'file' ? [layer] : []));
  await using disk = await flatDisk(paths);
  await run(['/usr/sbin/e2fsck', '-fn', disk.path]);
  assert.equal((await run(['/usr/sbin/e2label', disk.path])).stdout.trim(), 'aenv-drive-2');
  const listed = await run(['/usr/sbin/debugfs', '-R', 'ls -p /', disk.path]);
  assert.doesNotMatch(listed.stdout, /\/home\//);
  assert.match(listed.stdout, /\/etc\//);
  assert.deepEqual(await pullDrive(`${front.host}/drive`, { ...options, label: 'aenv-drive-2' }), second);
  await assert.rejects(pullDrive(`${front.host}/no-ext4`, { ...options, label: 'aenv-drive-1' }), {
    code: 'image_invalid',
    message: /no ext4/,
  });
});
