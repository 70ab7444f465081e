import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { fsck } from '../testing/ext4.ts';
import { TestLayout } from '../testing/layout.ts';
import { type TestMember, tar } from '../testing/tar.ts';
import { buildRootfs, type Rootfs } from './build.ts';

let top = '';
const sizeBytes = 64 * 2 ** 20;

beforeEach(async () => {
  top = await mkdtemp(join(tmpdir(), 'images-rootfs-'));
});

afterEach(async () => {
  await rm(top, { recursive: true, force: true });
});

async function layoutOf(members: readonly TestMember[], config = {}): Promise<TestLayout> {
  const layout = await TestLayout.in(join(top, 'layout'));
  const archive = tar(...members);
  await layout.index(await layout.image([[archive, gzipSync(archive)]], { config }));
  return layout;
}

const build = (layout: TestLayout, options = {}): Promise<Rootfs> =>
  buildRootfs(layout.dir, {
    ...{ assetsDir: join(top, 'assets'), sizeBytes, log: silentLogger },
    platform: { os: 'linux', architecture: 'amd64' },
    ...options,
  });

async function debugfs(path: string, command: string): Promise<string> {
  return (await run(['debugfs', '-R', command, path])).stdout;
}

const DEBIAN: readonly TestMember[] = [
  { name: './', mode: 0o1755, gid: 3, mtime: 1_600_000_000 },
  { name: 'etc/passwd', data: 'root:x:0:0::/root:/bin/sh\n' },
  { name: 'etc/group', data: 'root:x:0:\n' },
  { name: 'bin/tool', data: 'x', mode: 0o4755, uid: 70_000, mtime: 1_500_000_000 },
];

test('an image becomes a clean, sparse ext4 with the content of its layers', async () => {
  const rootfs = await build(await layoutOf(DEBIAN, { Env: ['A=1'] }));
  assert.equal(rootfs.sizeBytes, sizeBytes);
  const found = await stat(rootfs.path);
  assert.equal(found.size, sizeBytes);
  assert.ok(found.blocks * 512 < sizeBytes / 4, `${found.blocks * 512} bytes on disk`);
  assert.equal(found.mode & 0o777, 0o444);
  await fsck(rootfs.path);
  const { stdout } = await run(['dumpe2fs', '-h', rootfs.path]);
  assert.match(stdout, /volume name:\s+aenv-root/);
  assert.match(stdout, /Reserved block count:\s+0/);
  assert.match(
    await debugfs(rootfs.path, 'stat /bin/tool'),
    /Mode: {2}04755[\s\S]*User: 70000 [\s\S]*mtime: 0x59682f00/,
  );
  assert.match(await debugfs(rootfs.path, 'stat /'), /Mode: {2}01755[\s\S]*Group: {5}3 /);
  assert.match(await debugfs(rootfs.path, 'cat /etc/passwd'), /^user:x:1000:1000::\/home\/user:/m);
  assert.deepEqual(rootfs.start, { user: 'user', workdir: '/home/user', envVars: { A: '1' } });
});

test('the same image is built once, and by two at once with one result', async () => {
  const layout = await layoutOf(DEBIAN);
  const [first, second] = await Promise.all([build(layout), build(layout)]);
  assert.deepEqual(first, second);
  const { ino, mtimeMs } = await stat(first.path);
  const third = await build(layout);
  assert.deepEqual(third, first);
  const again = await stat(third.path);
  assert.deepEqual([again.ino, again.mtimeMs], [ino, mtimeMs]);
  assert.equal((await readdir(join(top, 'assets', 'rootfs'))).length, 1);
});

test('a static binary alone is an image too', async () => {
  const layout = await layoutOf([{ name: 'server', data: '\x7fELF', mode: 0o755 }], { WorkingDir: '/data/app' });
  const rootfs = await build(layout);
  assert.deepEqual([rootfs.start.user, rootfs.start.workdir], ['root', '/data/app']);
  const names = (await debugfs(rootfs.path, 'ls -p /')).split('\n').map((line) => line.split('/')[5]);
  assert.deepEqual(names.filter((name) => name?.match(/^\w/)).sort(), ['data', 'lost+found', 'server']);
});

test('a failure of any kind leaves nothing in the cache', async () => {
  const layout = await layoutOf([{ name: '../escape', data: 'x' }]);
  await assert.rejects(build(layout), { code: 'image_invalid' });
  assert.deepEqual(await readdir(join(top, 'assets', 'rootfs')), []);

  const big = await layoutOf([{ name: 'big', data: Buffer.alloc(11 * 2 ** 20, 'x') }]);
  await assert.rejects(build(big, { sizeBytes: 2 ** 24 }), { code: 'image_invalid' });
  assert.deepEqual(await readdir(join(top, 'assets', 'rootfs')), []);

  const aborted = build(big, { signal: AbortSignal.abort(new Error('stop')) });
  await assert.rejects(aborted, /stop/);
  assert.deepEqual(await readdir(join(top, 'assets', 'rootfs')), []);
});

test('a layer whose archive is not the announced one is refused', async () => {
  const layout = await TestLayout.in(join(top, 'layout'));
  const archive = tar({ name: 'a', data: 'x' });
  const other = tar({ name: 'a', data: 'y' });
  await layout.index(await layout.image([[archive, gzipSync(other)]]));
  await assert.rejects(build(layout), { code: 'image_invalid', message: /archive of layer .* has the digest/ });
});

test('a damaged cache is named with the folder to remove', async () => {
  const layout = await layoutOf(DEBIAN);
  const rootfs = await build(layout);
  await rm(rootfs.path);
  await assert.rejects(build(layout), (error: Error & { code?: string; remediation?: string }) => {
    assert.equal(error.code, 'asset_failed');
    return error.remediation?.includes(join(top, 'assets', 'rootfs')) === true;
  });
});
