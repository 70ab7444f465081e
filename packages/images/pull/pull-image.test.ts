import assert from 'node:assert/strict';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fileLayer, LayerPool, type LayerRef } from '@aenv/block/layers/stack/pool.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { pullDrive } from '../drive/pull-drive.ts';
import { DiskFiles } from '../ext4/edit/disk-files.ts';
import { BlobCache } from '../lazy/blob-cache.ts';
import { RemoteLayers } from '../lazy/remote-layers.ts';
import { blockImage } from '../testing/block-layers.ts';
import type { Exchange } from '../testing/fault-front.ts';
import { flatDisk } from '../testing/flat-disk.ts';
import { foreignDisk, withDisk, writeFiles } from '../testing/foreign-disk.ts';
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

/** Two block layers, one above the other, as a registry has them. */
async function pushBlocks(repository: string): Promise<readonly TestDescriptor[]> {
  await using lower = await foreignDisk(['-O', '^has_journal,^metadata_csum'], DISK, (root) =>
    writeFiles(root, { 'etc/passwd': 'root:x:0:0::/root:/bin/sh\n', large: 'x'.repeat(2 ** 20) }),
  );
  const upper = join(dir, 'upper');
  await copyFile(lower.path, upper);
  await withDisk({ path: upper }, async (disk) => {
    const files = await DiskFiles.open(disk, DISK);
    await files.writeText('/etc/second', 'of the second layer', 0o644);
    await files.writeTo(disk);
  });
  const { manifest, layers } = await blockImage(fixture.layout, [lower.path, upper], { WorkingDir: '/srv/app' });
  await push({ base: fixture.base, repository }, fixture.layout, manifest, 'latest');
  return layers;
}

/** What the disk of an image has for a path, and that all of it is sound. */
async function fileOf(refs: readonly LayerRef[], path: string): Promise<string | undefined> {
  const stack = await new LayerPool().openStack(refs);
  try {
    return await (await DiskFiles.open(stack, stack.virtualSize)).readText(path);
  } finally {
    await stack.close();
  }
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

test('an image of blocks stays in its registry, is read from there, and has the start state in a layer of this host', async () => {
  await pushBlocks('blocks');
  const { front, options } = await behind();
  await withRemote(options, async (remoteLayers) => {
    const image = await pullImage(`${front.host}/blocks`, { ...options, remoteLayers });
    assert.equal(image.sizeBytes, DISK);
    assert.deepEqual(image.start, { user: 'user', workdir: '/srv/app', envVars: {} });
    assert.deepEqual(
      image.layers.map(({ kind }) => kind),
      ['remote', 'remote', 'file'],
    );
    const refs = image.layers.map((layer) =>
      layer.kind === 'file' ? fileLayer(layer.path) : remoteLayers.ref(layer.remote),
    );
    assert.match((await fileOf(refs, '/etc/passwd')) ?? '', /^root:.*\nuser:x:1000:1000::\/home\/user:/);
    assert.equal(await fileOf(refs, '/etc/second'), 'of the second layer');
    for (const { headers } of front.matching(/blobs\/sha256/).slice(1)) assert.match(headers.range ?? '', /^bytes=/);

    const requests = front.matching(/blobs\/sha256/).length;
    assert.deepEqual(await pullImage(`${front.host}/blocks`, { ...options, remoteLayers }), image);
    assert.equal(front.matching(/blobs\/sha256/).length, requests + 1, 'only the configuration');

    for (const layer of image.layers) {
      if (layer.kind === 'file') continue;
      await remoteLayers.complete(layer.remote, new AbortController().signal);
      assert.ok(remoteLayers.isVerified(layer.digest));
    }
    const larger = { ...options, remoteLayers, sizeBytes: 2 * DISK };
    const remediation = 'Leave the size of the disk out.';
    await assert.rejects(pullImage(`${front.host}/blocks`, larger), { code: 'invalid_request', remediation });
  });
});

test('an image of blocks is fetched whole where parts are not served, or not to the block daemon, or not wanted', async () => {
  const layers = await pushBlocks('whole');
  const { front, options } = await behind((exchange) => exchange.relay({ ignoreRange: true }));
  const kinds = ({ layers: found }: PulledImage) => found.map(({ kind, digest }) => [kind, digest]);
  const expected = (image: PulledImage) => [
    ...layers.map(({ digest }) => ['file', digest]),
    ['file', image.layers.at(-1)?.digest],
  ];
  await withRemote(options, async (remoteLayers) => {
    const image = await pullImage(`${front.host}/whole`, { ...options, remoteLayers });
    assert.deepEqual(kinds(image), expected(image));
    const refs = image.layers.flatMap((layer) => (layer.kind === 'file' ? [fileLayer(layer.path)] : []));
    assert.equal(await fileOf(refs, '/etc/second'), 'of the second layer');
    assert.deepEqual((await pullImage(`${front.host}/whole`, options)).layers, image.layers);

    front.rule = ({ headers, reply }) => {
      if (headers.range !== undefined) reply(401, { 'www-authenticate': 'Basic realm="x"' });
    };
    const refused = await pullImage(`${front.host}/whole`, { ...options, remoteLayers, layersDir: join(dir, 'other') });
    assert.deepEqual(kinds(refused), expected(refused));
  });
});

test('an image becomes a drive with a label and without a start state; blocks that are no file system are refused', async () => {
  await pushFiles('drive');
  await pushBlocks('blocks-drive');
  const noise = join(dir, 'noise');
  await writeFile(noise, Buffer.alloc(2 ** 20, 7));
  const { manifest } = await blockImage(fixture.layout, [noise]);
  await push({ base: fixture.base, repository: 'no-ext4' }, fixture.layout, manifest, 'latest');
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
  await withRemote(options, async (remoteLayers) => {
    const remote = await pullDrive(`${front.host}/blocks-drive`, { ...options, remoteLayers, label: 'aenv-drive-1' });
    const kinds = remote.layers.map(({ kind }) => kind);
    assert.deepEqual(kinds, ['remote', 'remote', 'file']);
  });
  const { sizeBytes: _, ...anySize } = options;
  await assert.rejects(pullDrive(`${front.host}/no-ext4`, { ...anySize, label: 'aenv-drive-1' }), {
    code: 'image_invalid',
    message: /no ext4/,
  });
});
