import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readdir, rm, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { fileLayer, LayerPool } from '@aenv/block/layers/stack/pool.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { type OciImage, readOciLayout } from '../oci/layout.ts';
import { fsck, MemoryDisk } from '../testing/ext4.ts';
import { type DiskFile, Ext4Reader } from '../testing/ext4-reader.ts';
import { flatDisk } from '../testing/flat-disk.ts';
import { TestLayout } from '../testing/layout.ts';
import { type TestMember, tar } from '../testing/tar.ts';
import { type ConvertedImage, type ConvertOptions, type ConvertProgress, convertImage } from './convert.ts';
import { MODEL_FILE } from './layer-record.ts';

const SIZE = 64 * 2 ** 20;
let top = '';
let layouts = 0;

beforeEach(async () => {
  top = await mkdtemp(join(tmpdir(), 'images-convert-'));
});

afterEach(() => rm(top, { recursive: true, force: true }));

const file = (name: string, data = name): TestMember => ({ name, data });
const DEBIAN: readonly TestMember[] = [
  file('etc/passwd', 'root:x:0:0::/root:/bin/sh\n'),
  file('etc/group', 'root:x:0:\n'),
  file('bin/sh', 'program'),
];
const APP: readonly TestMember[] = [file('srv/app', 'the app'), file('etc/.wh.group', '')];

async function imageOf(
  layers: readonly (readonly TestMember[])[],
  config = {},
  pack: (archive: Buffer) => Buffer = gzipSync,
): Promise<OciImage> {
  const layout = await TestLayout.in(join(top, `layout-${layouts++}`));
  const archives = layers.map((members) => tar(...members));
  await layout.index(
    await layout.image(
      archives.map((archive) => [archive, pack(archive)] as const),
      { config },
    ),
  );
  return readOciLayout(layout.dir, { platform: { os: 'linux', architecture: 'amd64' } });
}

function convert(image: OciImage, options: Partial<ConvertOptions> = {}): Promise<ConvertedImage> {
  return convertImage(image, {
    ...{ layersDir: join(top, 'layers'), sizeBytes: SIZE, log: silentLogger },
    ...options,
  });
}

async function filesOf(layers: ConvertedImage['layers']): Promise<Map<string, DiskFile>> {
  const disk = new MemoryDisk();
  const stack = await new LayerPool().openStack(layers.map(({ path }) => fileLayer(path)));
  for (const { offset, length } of stack.dataRanges(0, stack.virtualSize)) {
    const data = Buffer.alloc(length);
    await stack.read(data, offset);
    disk.write(offset / 4096, data);
  }
  await stack.close();
  return new Ext4Reader(disk).tree();
}

const text = (files: Map<string, DiskFile>, path: string) => files.get(path)?.content.toString();
const digests = (image: ConvertedImage) => image.layers.map(({ digest }) => digest);

test('each layer of an image becomes one of blocks, and the start state a further one', async () => {
  for (const pack of [gzipSync, zstdCompressSync, (archive: Buffer) => archive]) {
    const image = await convert(await imageOf([DEBIAN, APP], { Env: ['A=1'], WorkingDir: '/data' }, pack));
    assert.equal(image.layers.length, 3);
    assert.deepEqual(image.start, { user: 'user', workdir: '/data', envVars: { A: '1' } });
    const [first, second] = [await filesOf(image.layers.slice(0, 1)), await filesOf(image.layers)];
    assert.equal(text(first, 'etc/group'), 'root:x:0:\n');
    assert.ok(!first.has('srv'));
    assert.equal(text(second, 'srv/app'), 'the app');
    assert.equal(text(second, 'etc/group'), 'user:x:1000:\n');
    assert.equal(text(second, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n');
    assert.ok(second.has('data'));
    for (let count = 1; count <= 3; count++) {
      await using disk = await flatDisk(image.layers.slice(0, count));
      await fsck(disk.path);
    }
  }
  assert.deepEqual((await readdir(join(top, 'layers'))).length, 3);
});

test('each layer stands on the one below it, and only on that', async () => {
  const { layers } = await convert(await imageOf([DEBIAN, APP]));
  assert.deepEqual(
    layers.map(({ parentUuid }) => parentUuid),
    [undefined, layers[0]?.uuid, layers[1]?.uuid],
  );
  const refs = [layers[0], layers[2]].map((layer) => fileLayer(layer?.path ?? ''));
  await assert.rejects(new LayerPool().openStack(refs), { code: 'layer_corrupt' });
});

test('images with the same layers below share them; what comes above is small', async () => {
  const big = { name: 'big', data: Buffer.alloc(5 * 2 ** 20, 'data') };
  const first = await convert(await imageOf([[...DEBIAN, big], APP]));
  const second = await convert(await imageOf([[...DEBIAN, big], [file('srv/other')]]));
  assert.deepEqual(second.layers[0], first.layers[0]);
  assert.notEqual(second.layers[1]?.path, first.layers[1]?.path);
  assert.ok((second.layers[1]?.sizeBytes ?? 0) < 100_000, `${second.layers[1]?.sizeBytes} bytes`);
  assert.equal(text(await filesOf(second.layers), 'srv/other'), 'srv/other');
});

test('the same image gives the same bytes, from the kept model, without it, and on another day', async () => {
  const image = await imageOf([DEBIAN, APP, [file('bin/sh', 'another'), file('x/y/z')]], { User: 'root' });
  const once = await convert(image, { layersDir: join(top, 'once') });
  // Each time one layer more, so that every one begins with what the last time has left.
  for (const kept of [true, false]) {
    const layersDir = join(top, String(kept));
    for (let count = 0; count <= 3; count++) {
      const part = await convert({ ...image, layers: image.layers.slice(0, count) }, { layersDir });
      if (kept) continue;
      for (const { path } of part.layers) await unlink(join(dirname(path), MODEL_FILE)).catch(() => {});
    }
    assert.deepEqual(digests(await convert(image, { layersDir })), digests(once), String(kept));
  }
});

test('another size of the disk gives another disk', async () => {
  const image = await imageOf([DEBIAN]);
  const small = await convert(image);
  const large = await convert(image, { sizeBytes: 4 * SIZE });
  assert.notEqual(small.layers[0]?.path, large.layers[0]?.path);
  await using disk = await flatDisk(large.layers);
  await fsck(disk.path);
  for (const sizeBytes of [2 ** 20, SIZE + 1, 2 ** 50, Number.NaN]) {
    await assert.rejects(convert(image, { sizeBytes }), { code: 'invalid_request' });
  }
});

test('a scratch image, and an image without any layer, are images too', async () => {
  const scratch = await convert(await imageOf([[file('server', 'binary')]], { WorkingDir: '/work' }));
  assert.deepEqual(scratch.start, { user: 'root', workdir: '/work', envVars: {} });
  assert.deepEqual([...(await filesOf(scratch.layers)).keys()].sort(), ['', 'lost+found', 'server', 'work']);
  const empty = await convert(await imageOf([]));
  assert.equal(empty.layers.length, 1);
  await using disk = await flatDisk(empty.layers);
  await fsck(disk.path);
});

test('two conversions at once agree', async () => {
  const image = await imageOf([DEBIAN, APP]);
  const [first, second] = await Promise.all([convert(image), convert(image)]);
  assert.deepEqual(first, second);
  assert.deepEqual((await readdir(join(top, 'layers'))).length, 3);
});

test('a layer that fails leaves nothing, and those below it stay', async () => {
  const bad = await imageOf([DEBIAN, [file('../escape')]]);
  await assert.rejects(convert(bad), { code: 'image_invalid', message: /points out of the image/ });
  const { layers } = await imageOf([DEBIAN]);
  const [first] = (await convert({ ...bad, layers })).layers;
  const names = await readdir(join(top, 'layers'));
  assert.equal(names.filter((name) => first?.path.includes(name)).length, 1);
  assert.deepEqual(
    names.filter((name) => name.startsWith('.')),
    [],
  );
});

test('a layer whose archive is not the announced one is refused', async () => {
  const layout = await TestLayout.in(join(top, 'layout'));
  await layout.index(await layout.image([[tar(file('a', 'x')), gzipSync(tar(file('a', 'y')))]]));
  const image = await readOciLayout(layout.dir, { platform: { os: 'linux', architecture: 'amd64' } });
  await assert.rejects(convert(image), { message: /archive of layer .* has the digest/ });
  assert.deepEqual(await readdir(join(top, 'layers')), []);
});

test('an abort ends it at any moment and leaves nothing half-made', async () => {
  const image = await imageOf(
    [DEBIAN, [{ name: 'big', data: Buffer.alloc(3 * 2 ** 20, 'x') }], APP],
    {},
    (archive) => archive,
  );
  const aborted = (at: number) => {
    const end = new AbortController();
    let reports = 0;
    const onProgress = () => {
      if (reports++ === at) end.abort(new Error('enough'));
    };
    return convert(image, { signal: end.signal, onProgress });
  };
  await assert.rejects(convert(image, { signal: AbortSignal.abort(new Error('enough')) }), /enough/);
  for (let at = 0; at < 6; at++) {
    await assert.rejects(aborted(at), /enough/);
    assert.deepEqual(
      (await readdir(join(top, 'layers'))).filter((name) => name.startsWith('.')),
      [],
    );
  }
  await using disk = await flatDisk((await convert(image)).layers);
  await fsck(disk.path);
});

test('progress only grows, and ends with all of it', async () => {
  const image = await imageOf([DEBIAN, [{ name: 'big', data: Buffer.alloc(2 ** 20, 'x') }], APP]);
  const reports: ConvertProgress[] = [];
  await convert(image, { onProgress: (report) => reports.push(report) });
  const total = image.layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  assert.ok(reports.every((report, at) => report.doneBytes >= (reports[at - 1]?.doneBytes ?? 0)));
  assert.deepEqual(reports.at(-1), { layer: 4, layers: 3, doneBytes: total, totalBytes: total });
  assert.ok(reports.some(({ doneBytes }) => doneBytes > 0 && doneBytes < total));
});

test('a damaged layer is named with the folder to remove', async () => {
  const image = await imageOf([DEBIAN]);
  const { layers } = await convert(image);
  const path = layers[0]?.path ?? '';
  await appendFile(path, 'x');
  const isNamed = (error: Error & { code?: string; remediation?: string }) =>
    error.code === 'asset_failed' && error.remediation?.includes(dirname(path)) === true;
  await assert.rejects(convert(image), isNamed);
  await unlink(path);
  await assert.rejects(convert(image), isNamed);
});

test('layers of overlaybd are no archives', async () => {
  const image = await imageOf([DEBIAN, APP]);
  const [first, ...rest] = image.layers;
  const layers = first === undefined ? rest : [{ ...first, form: 'overlaybd' as const }, ...rest];
  await assert.rejects(convert({ ...image, layers }), { code: 'image_invalid', message: /used as they are/ });
});

test('an image of very many layers becomes a stack that can be opened', async () => {
  const image = await imageOf(Array.from({ length: 70 }, (_, at) => [file(`layer-${at}`), file('last', String(at))]));
  const { layers } = await convert(image);
  assert.equal(layers.length, 65);
  const files = await filesOf(layers);
  assert.equal(text(files, 'last'), '69');
  assert.ok(Array.from({ length: 70 }, (_, at) => files.has(`layer-${at}`)).every(Boolean));
});
