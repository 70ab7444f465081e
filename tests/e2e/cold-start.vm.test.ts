import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { blockImage } from '@aenv/images/testing/block-layers.ts';
import type { FaultFront, Rule } from '@aenv/images/testing/fault-front.ts';
import { foreignDisk, writeFiles } from '@aenv/images/testing/foreign-disk.ts';
import { push } from '@aenv/images/testing/push.ts';
import { RegistryFixture } from '@aenv/images/testing/registry-fixture.ts';
import { tar } from '@aenv/images/testing/tar.ts';
import { killAndWait } from '@aenv/platform/process/identity.ts';
import { run } from '@aenv/platform/process/run.ts';
import { aenv } from '../harness/cli.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

/** Tells who and where it is; with arguments, a checksum of each file, or why it cannot be read. */
const PROGRAM = `
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  static char data[65536];
  char folder[4096];
  if (argc == 1) printf("uid %d, in %s\\n", getuid(), getcwd(folder, sizeof folder));
  for (int at = 1; at < argc; at++) {
    uint32_t sum = 2166136261u;
    long got = 0;
    int file = open(argv[at], O_RDONLY);
    if (file < 0) printf("%s\\n", strerror(errno));
    while (file >= 0 && (got = read(file, data, sizeof data)) > 0)
      for (long byte = 0; byte < got; byte++) sum = (sum ^ (uint8_t)data[byte]) * 16777619u;
    if (file >= 0) got < 0 ? printf("%s\\n", strerror(errno)) : printf("%08x\\n", sum);
    if (file >= 0) close(file);
  }
  return 0;
}
`;

const MIB = 2 ** 20;
const DISK_MIB = 96;
const FILES = 6;
/** Whatever it is compressed with, it stays as large as it is. */
const contents = Array.from({ length: FILES }, () => randomBytes(4 * MIB));

let scratch: string;
let registry: RegistryFixture;
let front: FaultFront;
let daemon: TestDaemon;
let blocksSize: number;

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'aenv-cold-'));
  registry = await RegistryFixture.start();
  front = await registry.front();
  await pushImages();
  daemon = await TestDaemon.start({
    env: {
      AENV_REGISTRY_INSECURE: front.host,
      AENV_REGISTRY_OFFLINE_AFTER_SECONDS: '2',
      // What is not asked for is not fetched, so that there is something to miss.
      AENV_REGISTRY_COMPLETE_LAYERS: 'false',
    },
  });
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
  await registry?.close();
  await rm(scratch, { recursive: true, force: true });
});

async function pushImages(): Promise<void> {
  const source = join(scratch, 'tell.c');
  const program = join(scratch, 'tell');
  await writeFile(source, PROGRAM);
  await run(['musl-gcc', '-static', '-o', program, source]);
  const passwd = 'root:x:0:0::/root:/bin/tell\n';
  const archive = tar(
    { name: 'bin/' },
    { name: 'bin/tell', mode: 0o755, data: await readFile(program) },
    { name: 'etc/passwd', data: passwd },
  );
  const plain = await registry.layout.image([[archive, gzipSync(archive)]], { config: { WorkingDir: '/srv' } });
  await push({ base: registry.base, repository: 'plain' }, registry.layout, plain, '1');
  const arm = await registry.layout.image([archive], { platform: { os: 'linux', architecture: 'arm64' } });
  await push({ base: registry.base, repository: 'arm' }, registry.layout, arm, '1');

  await using disk = await foreignDisk(['-O', '^has_journal,^metadata_csum'], DISK_MIB * MIB, async (root) => {
    await mkdir(join(root, 'bin'), { recursive: true });
    await run(['cp', program, join(root, 'bin/tell')]);
    await writeFiles(root, { 'etc/passwd': passwd });
    await mkdir(join(root, 'data'));
    for (const [at, content] of contents.entries()) await writeFile(join(root, `data/${at}`), content);
  });
  const { manifest, layers } = await blockImage(registry.layout, [disk.path], { Env: ['PATH=/bin'] });
  await push({ base: registry.base, repository: 'blocks' }, registry.layout, manifest, '1');
  blocksSize = layers.reduce((sum, { size }) => sum + size, 0);
}

/** Bytes of layers that were asked for. */
function askedFor(): number {
  return front.matching(/blobs\/sha256/).reduce((sum, { headers }) => {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
    return sum + (from === undefined ? 0 : Number(to) - Number(from) + 1);
  }, 0);
}

function checksum(data: Buffer): string {
  let sum = 2166136261;
  for (const byte of data) sum = Math.imul(sum ^ byte, 16777619);
  return (sum >>> 0).toString(16).padStart(8, '0');
}

const EXPECTED = contents.map(checksum);
const LOST = 'I/O error';

async function startCold(image: string, ...more: readonly string[]): Promise<string> {
  const started = await aenv(daemon, ['start', '--cold', `${front.host}/${image}`, '-d', '--memory', '256', ...more], {
    timeoutMs: 120_000,
  });
  assert.equal(started.code, 0, `${started.stderr} ${await daemon.log()}`);
  return started.stdout.toString().trim();
}

async function tell(sandboxId: string, ...paths: readonly string[]): Promise<string[]> {
  const { stdout, stderr, code } = await aenv(daemon, ['exec', sandboxId, '/bin/tell', ...paths], {
    timeoutMs: 60_000,
  });
  assert.equal(code, 0, stderr);
  return stdout.toString().trim().split('\n');
}

async function killBlockd(): Promise<void> {
  const text = await readFile(join(daemon.runtime, 'blockd', 'state.json'), 'utf8');
  const { pid, startTime } = JSON.parse(text) as { pid: number; startTime: number };
  await killAndWait({ pid, startTime });
}

test('a sandbox starts from block layers that stay in their registry, and lives through what happens to that', async () => {
  const sandbox = await startCold('blocks:1');
  assert.deepEqual(await tell(sandbox), ['uid 1000, in /home/user'], 'the start state is there');
  assert.ok(askedFor() < blocksSize / 3, `${askedFor()} of ${blocksSize} bytes were fetched to start`);
  assert.deepEqual(await tell(sandbox, '/data/0'), [EXPECTED[0]]);

  // The registry is away: what is not here is an error after the time that is configured, and never something else.
  const away: Rule = ({ response }) => void response.destroy();
  front.rule = away;
  const begin = performance.now();
  assert.deepEqual(await tell(sandbox, '/data/1', '/data/0'), [LOST, EXPECTED[0]]);
  assert.ok(performance.now() - begin > 2000, 'it was waited for');
  // It gives other bytes than it has: the same.
  front.rule = (exchange) => exchange.relay({ change: (body) => body.fill(0) });
  assert.deepEqual(await tell(sandbox, '/data/2'), [LOST]);
  front.rule = () => {};
  assert.deepEqual(await tell(sandbox, '/data/1', '/data/2'), [EXPECTED[1], EXPECTED[2]], 'as soon as it is back');

  // The block daemon dies under the guest, and the node too; both know the registry again.
  await killBlockd();
  assert.deepEqual(await tell(sandbox, '/data/3'), [EXPECTED[3]]);
  assert.equal((await daemon.api('POST', `/sandboxes/${sandbox}/pause`)).status, 204);
  await daemon.stop();
  await daemon.launch();
  const resumed = await daemon.api('POST', `/sandboxes/${sandbox}/connect`, { timeout: 300 });
  assert.ok(resumed.ok, await resumed.text());
  assert.deepEqual(await tell(sandbox, '/data/4', '/data/0'), [EXPECTED[4], EXPECTED[0]]);
  assert.equal((await daemon.api('DELETE', `/sandboxes/${sandbox}`)).status, 204);

  // As a template it is captured like others, and its machines go on from the same layers.
  const pulled = await aenv(daemon, ['pull', `${front.host}/blocks:1`, '--name', 'remote', '--memory', '256']);
  assert.equal(pulled.code, 0, pulled.stderr);
  const created = await aenv(daemon, ['start', 'remote', '-d'], { timeoutMs: 120_000 });
  assert.equal(created.code, 0, `${created.stderr} ${await daemon.log()}`);
  const warm = created.stdout.toString().trim();
  assert.deepEqual(await tell(warm, '/data/5', '/data/1'), [EXPECTED[5], EXPECTED[1]]);
  assert.equal((await daemon.api('DELETE', `/sandboxes/${warm}`)).status, 204);
  assert.equal(front.matching(/blobs\/sha256/).filter(({ headers }) => headers.range === undefined).length, 2);
});

test('a sandbox starts from a plain image with the sizes that were asked for', async () => {
  const sandbox = await startCold('plain:1', '--cpu', '1', '--disk', '64');
  assert.deepEqual(await tell(sandbox), ['uid 1000, in /srv']);
  const { memoryMB, cpuCount, diskSizeMB } = (await (await daemon.api('GET', `/sandboxes/${sandbox}`)).json()) as {
    memoryMB: number;
    cpuCount: number;
    diskSizeMB: number;
  };
  assert.deepEqual({ memoryMB, cpuCount, diskSizeMB }, { memoryMB: 256, cpuCount: 1, diskSizeMB: 64 });
  assert.equal((await daemon.api('DELETE', `/sandboxes/${sandbox}`)).status, 204);
});

/** What is wrong, the body, and the code that is answered; the rule is that of the registry. */
const REFUSED: readonly (readonly [string, Readonly<Record<string, unknown>>, string, Rule?])[] = [
  ['an image that nobody has', { image: 'absent:1' }, '404 image_not_found'],
  ['a name that is none', { image: 'Not A Name' }, '400 image_reference_invalid'],
  ['another platform', { image: 'arm:1' }, '400 image_platform_missing'],
  ['credentials that are refused', { image: 'plain:1' }, '400 registry_auth', ({ reply }) => reply(401)],
  [
    'a layer with other bytes',
    { image: 'plain:1', diskSizeMB: 128 },
    '502 digest_mismatch',
    (exchange) =>
      exchange.url.pathname.includes('/blobs/') ? exchange.relay({ change: (body) => body.fill(1) }) : undefined,
  ],
  ['a disk of another size', { image: 'blocks:1', diskSizeMB: 64 }, '400 invalid_request'],
  ['too little memory', { image: 'plain:1', memoryMB: 1 }, '400 invalid_request'],
  ['files of the host', { image: 'oci:/etc' }, '400 image_reference_invalid'],
];

test('what cannot be started is refused with code and remedy, and nothing half-made is left', async () => {
  const templates = async () => ((await (await daemon.api('GET', '/templates')).json()) as unknown[]).length;
  const before = await templates();
  const answers: string[] = [];
  for (const [what, { image, ...more }, , rule = () => {}] of REFUSED) {
    front.rule = rule;
    const full = /^[a-z]+:1$/.test(String(image)) ? `${front.host}/${image}` : image;
    const answer = await daemon.api('POST', '/sandboxes-cold', { ...more, image: full });
    const body = (await answer.json()) as { error_code: string; message: string; remediation?: string };
    answers.push(`${what}: ${answer.status} ${body.error_code}`);
    assert.ok(body.message.length > 10 && (body.remediation ?? '').length > 10, `${what}: ${JSON.stringify(body)}`);
  }
  assert.deepEqual(
    answers,
    REFUSED.map(([what, , expected]) => `${what}: ${expected}`),
  );
  front.rule = () => {};
  assert.equal(await templates(), before);
  assert.deepEqual(await readdir(join(daemon.home, 'pull')).catch(() => []), []);
  await until(async () => ((await (await daemon.api('GET', '/v2/sandboxes')).json()) as unknown[]).length === 0, {
    timeoutMs: 60_000,
    what: 'no sandbox is left',
  });
  assert.deepEqual(await readdir(join(daemon.home, 'volumes', 'disks')), []);
});
