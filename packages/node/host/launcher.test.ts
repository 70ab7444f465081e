import assert from 'node:assert/strict';
import { chmod, copyFile, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RunOptions, run } from '@aenv/platform/process/run.ts';

const LAUNCHER = fileURLToPath(new URL('../../../aenv', import.meta.url));
const ARCH = process.arch === 'arm64' ? 'arm64' : 'x64';

let top = '';
let checkout = '';

/** A checkout whose Node is a script that prints its arguments. */
beforeEach(async () => {
  top = await realpath(await mkdtemp(join(tmpdir(), 'aenv-launcher-')));
  checkout = join(top, 'check out');
  await mkdir(checkout);
  await copyFile(LAUNCHER, join(checkout, 'aenv'));
  await chmod(join(checkout, 'aenv'), 0o755);
});

afterEach(async () => {
  await rm(top, { recursive: true, force: true });
});

const script = (path: string, body: string) => writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });

async function installNode(): Promise<void> {
  const bin = join(checkout, 'node_modules', `node-linux-${ARCH}`, 'bin');
  await mkdir(bin, { recursive: true });
  await script(join(bin, 'node'), 'for a; do echo "$a"; done; exit 7');
  await writeFile(join(checkout, 'node_modules', '.package-lock.json'), '{}');
}

async function call(args: readonly string[], path = join(checkout, 'aenv'), options: RunOptions = {}) {
  const { stdout, stderr, code } = await run([path, ...args], { okCodes: [0, 1, 7], ...options });
  const lines = stdout.trimEnd().split('\n');
  return { lines: lines.map((line) => line.replace(`${checkout}/`, '')), stderr, code };
}

test('commands of the host and those of a server go to their programs, with all arguments and the exit code', async () => {
  await installNode();
  const host = 'packages/node/host/main.ts';
  const cli = 'packages/cli/main.ts';
  assert.deepEqual((await call(['up', '--listen', 'a b'])).lines, [host, 'up', '--listen', 'a b']);
  assert.deepEqual((await call(['help', 'doctor'])).lines, [host, 'help', 'doctor']);
  assert.deepEqual((await call(['cert', '--out', 'd'])).lines, [host, 'cert', '--out', 'd']);
  assert.deepEqual((await call(['exec', 'up', '--', '$x'])).lines, [cli, 'exec', 'up', '--', '$x']);
  assert.deepEqual((await call(['--help'])).lines, [cli, '--help']);
  assert.deepEqual((await call(['help'])).lines, [cli, 'help']);
  const none = await call([]);
  assert.deepEqual([none.lines, none.code], [[cli], 7]);
});

test('it works from any folder and through links to it', async () => {
  await installNode();
  await mkdir(join(top, 'bin'));
  await symlink('../check out/aenv', join(top, 'bin', 'one'));
  await symlink(join(top, 'bin', 'one'), join(top, 'two'));
  for (const path of [join(top, 'bin', 'one'), join(top, 'two')]) {
    assert.deepEqual((await call(['ls'], path, { cwd: '/' })).lines, ['packages/cli/main.ts', 'ls'], path);
  }
});

test('what is missing is installed once, by npm ci in the checkout, and said on stderr', async () => {
  await mkdir(join(top, 'bin'));
  await script(
    join(top, 'bin', 'npm'),
    `echo "npm $1 in $(pwd)"
mkdir -p node_modules/node-linux-${ARCH}/bin
printf '#!/bin/sh\\necho started\\n' > node_modules/node-linux-${ARCH}/bin/node
chmod 755 node_modules/node-linux-${ARCH}/bin/node
touch node_modules/.package-lock.json`,
  );
  const env = { PATH: `${join(top, 'bin')}:/usr/bin:/bin` };
  const first = await call(['ls'], undefined, { env, cwd: '/' });
  assert.deepEqual(first.lines, ['started']);
  assert.match(first.stderr, new RegExp(`npm ci in ${checkout}`));
  assert.equal((await call(['ls'], undefined, { env })).stderr, '');
});
