import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { push } from '@aenv/images/testing/push.ts';
import { RegistryFixture } from '@aenv/images/testing/registry-fixture.ts';
import { tar } from '@aenv/images/testing/tar.ts';
import { run } from '@aenv/platform/process/run.ts';
import { aenv } from '../harness/cli.ts';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { ownAssets } from '../harness/own-assets.ts';

/** An image of two layers with one static program, from a real registry to a sandbox that runs it. */
const PROGRAM = `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char folder[4096], line[100] = "nothing";
  FILE *note = fopen("/srv/note", "r");
  if (note) fgets(line, sizeof line, note);
  printf("%s, uid %d, in %s, FROM_IMAGE=%s\\n", line, getuid(), getcwd(folder, sizeof folder), getenv("FROM_IMAGE"));
  return 0;
}
`;

let scratch: string;
let registry: RegistryFixture;
let daemon: TestDaemon;
let image: string;
let assets: Awaited<ReturnType<typeof ownAssets>>;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'aenv-pull-'));
  registry = await RegistryFixture.start();
  image = `${registry.registry.host}/team/hello:1`;
  await pushHello();
  assets = await ownAssets();
  daemon = await TestDaemon.start({
    env: { AENV_REGISTRY_INSECURE: registry.registry.host, AENV_ASSETS: assets.path },
  });
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
  await assets?.[Symbol.asyncDispose]();
  await registry?.close();
  await rm(scratch, { recursive: true, force: true });
});

async function pushHello(): Promise<void> {
  const source = join(scratch, 'hello.c');
  await writeFile(source, PROGRAM);
  await mkdir(join(scratch, 'bin'));
  const program = join(scratch, 'bin', 'hello');
  await run(['musl-gcc', '-static', '-o', program, source]);
  const archives = [
    tar(
      { name: 'bin/' },
      { name: 'bin/hello', mode: 0o755, data: await readFile(program) },
      { name: 'etc/' },
      { name: 'etc/passwd', data: 'root:x:0:0::/root:/bin/hello\napp:x:4242:4242::/srv:/bin/hello\n' },
      { name: 'etc/group', data: 'root:x:0:\napp:x:4242:\n' },
    ),
    tar({ name: 'srv/', uid: 4242, gid: 4242 }, { name: 'srv/note', data: 'from the second layer' }),
  ];
  const manifest = await registry.layout.image(
    archives.map((archive) => [archive, gzipSync(archive)] as const),
    { config: { Env: ['FROM_IMAGE=yes', 'PATH=/bin'], User: 'app', WorkingDir: '/srv' } },
  );
  await push({ base: registry.base, repository: 'team/hello' }, registry.layout, manifest, '1');
}

/** `aenv storage` with the folders of the daemon. */
function storage(...args: readonly string[]) {
  const env = { AENV_HOME: daemon.home, AENV_RUNTIME: daemon.runtime, AENV_ASSETS: assets.path };
  return aenv(daemon, ['storage', ...args], { env, timeoutMs: 180_000 });
}

/** The file of the topmost layer of the one disk there is. */
async function topLayer(): Promise<string> {
  const folder = join(daemon.home, 'volumes', 'disks');
  const [name] = await readdir(folder);
  const { layers } = JSON.parse(await readFile(join(folder, name ?? ''), 'utf8')) as { layers: { path?: string }[] };
  return layers.flatMap(({ path }) => path ?? []).at(-1) ?? assert.fail('the disk has no layers that are files');
}

test('aenv pull makes a template of an image, and its sandboxes run what is in it', async () => {
  const pulled = await aenv(daemon, ['pull', image, '--memory', '256', '--disk', '64', '--timeout', '120'], {
    timeoutMs: 150_000,
  });
  assert.equal(pulled.code, 0, pulled.stderr);
  // Small layers may both be here before progress is shown for the first time.
  assert.match(pulled.stderr, /layer [12] of 2, /);
  assert.match(pulled.stderr, /hello is ready/);
  const id = pulled.stdout.toString().trim();
  const shown = await aenv(daemon, ['template', 'get', 'hello', '--output', 'json']);
  assert.equal((JSON.parse(shown.stdout.toString()) as { templateID: string }).templateID, id);
  assert.equal((await aenv(daemon, ['template', 'tag', 'hello', 'v1'])).code, 0);
  {
    await using sandbox = await createSandbox(daemon, {}, 'hello:v1');
    const hello = async () => {
      const result = await aenv(daemon, ['exec', sandbox.sandboxId, 'hello']);
      const expected = 'from the second layer, uid 4242, in /srv, FROM_IMAGE=yes\n';
      assert.equal(result.stdout.toString(), expected, `${result.stderr} ${await daemon.log()}`);
    };
    await hello();
    const refused = await aenv(daemon, ['template', 'rm', 'hello']);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(sandbox.sandboxId));

    // What runs and what is paused stays, however much is collected; what nobody needs goes.
    const layer = await topLayer();
    const running = await storage('gc', '--all', '--output', 'json');
    assert.equal(running.code, 0, running.stderr);
    const { removed } = JSON.parse(running.stdout.toString()) as { removed: { path: string }[] };
    assert.ok(!removed.some(({ path }) => layer.startsWith(path)), 'the layer of a disk is kept');
    await hello();
    const paused = await aenv(daemon, ['pause', sandbox.sandboxId], { timeoutMs: 120_000 });
    assert.equal(paused.code, 0, paused.stderr);
    assert.equal((await storage('gc', '--all')).code, 0);
    const sound = await storage('verify');
    assert.equal(sound.code, 0, sound.stdout.toString());
    assert.match(sound.stderr, /layers: \d+ of \d+/, 'it tells how far it is');
    const resumed = await aenv(daemon, ['resume', sandbox.sandboxId], { timeoutMs: 120_000 });
    assert.equal(resumed.code, 0, `${resumed.stderr} ${await daemon.log()}`);
    await hello();

    // The machine goes on with the file as it was; a file of other tests it must not be.
    const flipped = await readFile(layer);
    const middle = flipped.length >> 1;
    flipped[middle] = (flipped[middle] ?? 0) ^ 1;
    await writeFile(`${layer}.flipped`, flipped);
    await rename(`${layer}.flipped`, layer);
    const damaged = await storage('verify', '--output', 'json');
    assert.equal(damaged.code, 1);
    const { problems } = JSON.parse(damaged.stdout.toString()) as { problems: { path: string }[] };
    // All that stands on it tells so.
    assert.deepEqual([...new Set(problems.map(({ path }) => path))], [layer]);
  }
  const removed = await aenv(daemon, ['template', 'rm', 'hello']);
  assert.equal(removed.code, 0, removed.stderr);
  assert.equal((await daemon.api('GET', `/templates/${id}`)).status, 404);
});

test('an image that is not there is an error with its reason, and leaves no template', async () => {
  const absent = await aenv(daemon, ['pull', `${registry.registry.host}/team/absent:1`]);
  assert.equal(absent.code, 1);
  assert.match(absent.stderr, /absent/);
  assert.equal((await daemon.api('GET', '/templates/absent')).status, 404);
});
