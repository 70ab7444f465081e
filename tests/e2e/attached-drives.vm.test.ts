import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { MAX_ATTACHED_DRIVES } from '@aenv/contracts/guest/layout.ts';
import { push } from '@aenv/images/testing/push.ts';
import { RegistryFixture } from '@aenv/images/testing/registry-fixture.ts';
import { type TestMember, tar } from '@aenv/images/testing/tar.ts';
import { run } from '@aenv/platform/process/run.ts';
import { Sandbox } from 'e2b';
import { aenv } from '../harness/cli.ts';
import { TestDaemon } from '../harness/daemon.ts';

/** Tells whether block devices take writes, past any file system: the first sector is written back as it is. */
const PROGRAM = `
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char sector[512];
  for (int i = 1; i < argc; i++) {
    int fd = open(argv[i], O_RDWR);
    int taken = pread(fd, sector, 512, 0) == 512 && pwrite(fd, sector, 512, 0) == 512 && fsync(fd) == 0;
    puts(taken ? "writable" : "read-only");
  }
  return 0;
}
`;

let daemon: TestDaemon;
let registry: RegistryFixture;
let scratch: string;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'aenv-drives-'));
  registry = await RegistryFixture.start();
  await writeFile(join(scratch, 'probe.c'), PROGRAM);
  await run(['musl-gcc', '-static', '-o', join(scratch, 'probe'), join(scratch, 'probe.c')]);
  const probe = await readFile(join(scratch, 'probe'));
  await pushImage('root', [{ name: 'bin/probe', mode: 0o755, data: probe }]);
  await pushImage('data', [
    { name: 'set/one', data: 'of the image' },
    { name: 'set/two', data: 'x'.repeat(100_000) },
  ]);
  daemon = await TestDaemon.start({ env: { AENV_REGISTRY_INSECURE: registry.registry.host } });
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
  await registry?.close();
  await rm(scratch, { recursive: true, force: true });
});

const imageOf = (name: string) => `${registry.registry.host}/team/${name}:1`;

async function pushImage(name: string, members: readonly TestMember[]): Promise<void> {
  const archive = tar(...members);
  const manifest = await registry.layout.image([[archive, gzipSync(archive)] as const]);
  await push({ base: registry.base, repository: `team/${name}` }, registry.layout, manifest, '1');
}

const connection = () => ({
  ...{ apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey, requestTimeoutMs: 180_000 },
});
const asRoot = { user: 'root' as const };

/** Disks and snapshots of disks that the node has. */
async function kept(): Promise<string[]> {
  const folders = ['disks', 'snapshots'].map((name) => join(daemon.home, 'volumes', name));
  return (await Promise.all(folders.map((folder) => readdir(folder)))).flat();
}

test('as many drives as there may be, read-only and writable, go through pause, crash of the daemon and fork', async () => {
  const others = Array.from({ length: MAX_ATTACHED_DRIVES - 3 }, (_, at) => [`--drive`, `d${at}=${imageOf('data')}`]);
  const drives = ['--drive', `data=${imageOf('data')},size=64`, '--drive', `out=${imageOf('data')},rw,path=/srv/out`];
  const part = ['--drive', `part=${imageOf('data')},path=/srv/part,sub=set,size=64`];
  const args = ['start', '--cold', imageOf('root'), '-d', '--memory', '256', '--disk', '64', '--timeout', '600'];
  const started = await aenv(daemon, [...args, ...drives, ...part, ...others.flat()], { timeoutMs: 300_000 });
  assert.equal(started.code, 0, `${started.stderr} ${await daemon.log()}`);
  let sandbox = await Sandbox.connect(started.stdout.toString().trim(), connection());
  const read = (path: string, of = sandbox) => of.files.read(path, asRoot);
  const write = (path: string, text: string, of = sandbox) => of.files.write(path, text, asRoot);

  assert.equal(await read('/mnt/data/set/one'), 'of the image');
  assert.equal(await read('/srv/out/set/one'), 'of the image');
  assert.equal((await read('/srv/part/two')).length, 100_000);
  for (let at = 0; at < others.length; at++) assert.equal(await read(`/mnt/d${at}/set/one`), 'of the image');
  const mounts = (await read('/proc/mounts')).split('\n').map((line) => line.split(' '));
  const deviceOf = (path: string) => mounts.find(([, at]) => at === path)?.[0] ?? `nothing at ${path}`;
  const devices = ['/mnt/data', '/srv/out'].map(deviceOf);
  for (const device of devices) assert.match(device, /^\/dev\/vd[c-p]$/);
  const probed = await aenv(daemon, ['exec', sandbox.sandboxId, 'probe', ...devices]);
  assert.deepEqual(probed.stdout.toString().trim().split('\n'), ['read-only', 'writable'], probed.stderr);
  await assert.rejects(write('/mnt/data/new', 'x'), /[Rr]ead-only/);
  await write('/srv/out/set/one', 'written before the pause');
  await write('/srv/out/big', 'y'.repeat(3_000_000));

  await sandbox.pause();
  sandbox = await Sandbox.connect(sandbox.sandboxId, connection());
  assert.equal(await read('/srv/out/set/one'), 'written before the pause');
  assert.equal((await read('/srv/out/big')).length, 3_000_000);
  assert.equal(await read('/mnt/data/set/one'), 'of the image');
  await assert.rejects(write('/mnt/data/new', 'x'), /[Rr]ead-only/);
  await write('/srv/out/after', 'written after the pause');

  await daemon.crash();
  await daemon.launch();
  sandbox = await Sandbox.connect(sandbox.sandboxId, connection());
  assert.equal(await read('/srv/out/after'), 'written after the pause');
  assert.equal(await read('/mnt/d0/set/one'), 'of the image');

  const forked = await daemon.api('POST', `/sandboxes/${sandbox.sandboxId}/fork`, { count: 1, timeout: 600 });
  const [child] = (await forked.json()) as { sandbox?: { sandboxID: string }; error?: unknown }[];
  assert.ok(child?.sandbox !== undefined, JSON.stringify(child));
  const fork = await Sandbox.connect(child.sandbox.sandboxID, connection());
  assert.equal(await read('/srv/out/after', fork), 'written after the pause');
  await write('/srv/out/after', 'written by the fork', fork);
  assert.equal(await read('/srv/out/after'), 'written after the pause');
  assert.equal(await read('/srv/out/after', fork), 'written by the fork');
  assert.equal(await read('/srv/part/one', fork), 'of the image');
  await Promise.all([fork.kill(), sandbox.kill()]);
  assert.deepEqual(await kept(), []);
});

test('drives that cannot be had or mounted are refused by name, and leave nothing', async () => {
  const start = (driveID: string, image: string, more: object = {}) =>
    daemon.api('POST', '/sandboxes-cold', {
      ...{ image: imageOf('root'), memoryMB: 256, diskSizeMB: 64 },
      attachedDrives: [{ driveID, source: { image }, diskSizeMB: 64, ...more }],
    });
  const absent = await start('gone', imageOf('absent'));
  assert.deepEqual([absent.status, /drive 'gone'/.test(await absent.text())], [404, true]);
  const blocked = await start('data', imageOf('data'), { mountPath: '/bin/probe' });
  assert.equal(blocked.status, 422);
  assert.match(await blocked.text(), /\/bin\/probe cannot be mounted/);
  const listed = await daemon.api('GET', '/v2/sandboxes');
  assert.deepEqual([await listed.json(), await kept()], [[], []]);
});
