import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import { convertLayout } from '@aenv/images/convert/from-layout.ts';
import { hostPlatform } from '@aenv/images/oci/platform.ts';
import { writeLayout } from '@aenv/images/oci/write-layout.ts';
import { localLayers } from '@aenv/node/templates/layers.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { AuthenticationError, type Sandbox } from 'e2b';
import { openLedger } from '../../packages/node/store/ledger.ts';
import { aenv } from '../harness/cli.ts';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';

/**
 * What a sandbox starts from need not be a Debian: here a root file system with one static program and nothing else, and
 * one with the musl C library, a dynamic program and an account of its own.
 */
const PROGRAM = `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char folder[4096];
  const char *name = argc > 1 ? argv[1] : "nobody";
  printf("hello from %s, uid %d, home %s, in %s\\n", name, getuid(), getenv("HOME"), getcwd(folder, sizeof folder));
  return argc > 2 ? 9 : 0;
}
`;

let scratch: string;
let daemon: TestDaemon;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'aenv-rootfs-'));
  await writeFile(join(scratch, 'hello.c'), PROGRAM);
  const only = join(scratch, 'static');
  await mkdir(only);
  await run(['musl-gcc', '-static', '-o', join(only, 'hello'), join(scratch, 'hello.c')]);

  const musl = join(scratch, 'musl');
  await mkdir(join(musl, 'bin'), { recursive: true });
  await mkdir(join(musl, 'lib'));
  await mkdir(join(musl, 'etc'));
  await mkdir(join(musl, 'srv', 'app'), { recursive: true });
  await run(['musl-gcc', '-o', join(musl, 'bin', 'hello'), join(scratch, 'hello.c')]);
  await cp('/usr/lib/x86_64-linux-musl/libc.so', join(musl, 'lib', 'libc.so'));
  await symlink('libc.so', join(musl, 'lib', 'ld-musl-x86_64.so.1'));
  await writeFile(join(musl, 'etc', 'passwd'), 'root:x:0:0::/root:/bin/sh\napp:x:4242:4242::/srv/app:/bin/hello\n');
  await writeFile(join(musl, 'etc', 'group'), 'root:x:0:\napp:x:4242:\n');

  daemon = await TestDaemon.start();
  await daemon.stop();
  const ledger = openLedger(daemon.home);
  try {
    await register(ledger, 'static', only, { WorkingDir: '/made/for/it' });
    await register(ledger, 'musl', musl, { User: 'app', Env: ['FROM_IMAGE=yes'] });
    await register(ledger, 'numeric', musl, { User: '1234' });
  } finally {
    ledger.close();
  }
  await daemon.launch();
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
  await rm(scratch, { recursive: true, force: true });
});

/** Imports a folder as an image of one layer, the way registry images come in, and makes a template of it. */
async function register(
  ledger: ReturnType<typeof openLedger>,
  alias: string,
  folder: string,
  config: Record<string, unknown>,
): Promise<void> {
  const archive = join(scratch, `${alias}.tar`);
  await run(['tar', '-C', folder, '--owner=0', '--group=0', '--numeric-owner', '-cf', archive, '.']);
  const layout = join(scratch, `${alias}.oci`);
  await mkdir(layout);
  await writeLayout(layout, { platform: hostPlatform(), archive, config, created: '2026-01-01T00:00:00Z' });
  await run(['chmod', '0755', scratch]);
  const layersDir = join(scratch, 'layers');
  const disk = await convertLayout(layout, { layersDir, sizeBytes: 64 * 1024 * 1024, log: silentLogger });
  const now = new Date();
  ledger.templates.put({
    templateId: alias.padEnd(20, '0'),
    buildId: randomUUID(),
    aliases: [alias],
    cpuCount: 1,
    memoryMb: 256,
    diskSizeMb: 64,
    createdAt: now,
    updatedAt: now,
    lastSpawnedAt: null,
    spawnCount: 0,
    envdVersion: ENVD_VERSION,
    source: { imageDigest: disk.digest, layers: localLayers(disk.layers.map(({ path }) => path)) },
    start: disk.start,
  });
}

const hello = async (sandbox: Sandbox, path: string, ...args: string[]) =>
  await aenv(daemon, ['exec', sandbox.sandboxId, path, ...args]);

/** As root, and as a user who is not there: the same in every image. */
async function otherUsers(sandbox: Sandbox, path: string): Promise<void> {
  const root = await aenv(daemon, ['exec', '--user', 'root', '--cwd', '/', sandbox.sandboxId, path, 'root']);
  assert.equal(root.stdout.toString(), 'hello from root, uid 0, home /root, in /\n', root.stderr);
  assert.equal((await sandbox.files.write('of-root', 'x', { user: 'root' })).path, '/root/of-root');
  const ghost = await aenv(daemon, ['exec', '--user', 'ghost', sandbox.sandboxId, path]);
  assert.equal(ghost.code, 125);
  assert.match(ghost.stderr, /invalid username: 'ghost'/);
  await assert.rejects(sandbox.files.write('x', 'y', { user: 'ghost' }), AuthenticationError);
  await assert.rejects(sandbox.files.list('/', { user: 'ghost' }), AuthenticationError);
}

test('T29: one static program and no account: it runs as root, its folder is made, files work', async () => {
  await using sandbox = await createSandbox(daemon, {}, 'static');
  const result = await hello(sandbox, '/hello', 'scratch');
  assert.equal(result.stdout.toString(), 'hello from scratch, uid 0, home /root, in /made/for/it\n', result.stderr);
  assert.equal((await hello(sandbox, '/hello', 'x', 'y')).code, 9);
  assert.equal((await hello(sandbox, '/nosuch')).code, 127);
  await sandbox.files.write('note.txt', 'kept');
  assert.equal(await sandbox.files.read('note.txt'), 'kept');
  assert.equal(await sandbox.files.exists('/tmp'), true);
  await assert.rejects(sandbox.commands.run('true'), /bash/);
  assert.equal(
    (await sandbox.files.list('/')).some((entry) => entry.name === 'hello'),
    true,
  );
  await otherUsers(sandbox, '/hello');
});

test('T29: musl, a user of the image, its environment and home', async () => {
  await using sandbox = await createSandbox(daemon, {}, 'musl');
  const result = await hello(sandbox, 'hello', 'musl');
  assert.equal(result.stdout.toString(), 'hello from musl, uid 4242, home /srv/app, in /srv/app\n', result.stderr);
  const written = await sandbox.files.write('x', 'y');
  assert.equal(written.path, '/srv/app/x');
  assert.equal((await sandbox.files.getInfo('x')).owner, 'app');
  await otherUsers(sandbox, '/bin/hello');
});

test('T29: a user that is only a number', async () => {
  await using sandbox = await createSandbox(daemon, {}, 'numeric');
  const result = await hello(sandbox, '/bin/hello', 'number');
  assert.match(result.stdout.toString(), /^hello from number, uid 1234, home \/, in \/\n$/, result.stderr);
  assert.equal((await sandbox.files.write('/0/x', 'y')).path, '/0/x');
  assert.equal((await sandbox.files.write('x', 'y')).path, '/x');
  assert.equal((await sandbox.files.getInfo('x')).owner, '1234');
  await otherUsers(sandbox, '/bin/hello');
});
