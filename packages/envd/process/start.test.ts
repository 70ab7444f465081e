import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { collect, run, start, stream, unary } from '../testing/rpc-client.ts';

let envd: TestEnvd;
before(async () => {
  envd = await testEnvd();
  await envd.init({
    sandboxId: 'ix',
    templateId: 'tx',
    envVars: { A: 'x=y', B: 'l1\nl2', C: '$HOME "q"', E2B_SANDBOX: 'no' },
  });
});
after(() => envd[Symbol.asyncDispose]());

const bash = (script: string, request = {}, options = {}) =>
  run(envd.url, '/bin/bash', ['-c', script], { stdin: false, ...request }, options);

test('output, then one end event, then one end frame', async () => {
  const result = await bash('echo out; echo err >&2');
  assert.equal(result.stdout, 'out\n');
  assert.equal(result.stderr, 'err\n');
  assert.deepEqual(result.end, { exitCode: 0, exited: true, status: 'exit status 0' });
  assert.equal(result.endFrames, 1);
  assert.equal(result.error, undefined);
});

test('the first message is the start event and comes before the process writes or ends', async () => {
  const frames = start(envd.url, 'sleep', ['30']);
  const first = await frames.next();
  const pid = first.value?.message.event?.start?.pid;
  assert.ok(pid !== undefined && pid > 0);
  await unary(envd.url, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' });
  const rest = await collect(frames);
  assert.equal(rest.end?.status, 'signal: killed');
});

for (const [script, expected] of [
  ['exit 44', { exitCode: 44, exited: true, status: 'exit status 44', error: 'exit status 44' }],
  ['exit 300', { exitCode: 44, exited: true, status: 'exit status 44', error: 'exit status 44' }],
  ['kill -9 $$', { exitCode: -1, exited: false, status: 'signal: killed', error: 'signal: killed' }],
  ['kill -15 $$', { exitCode: -1, exited: false, status: 'signal: terminated', error: 'signal: terminated' }],
] as const) {
  test(`the end of \`${script}\` is reported as Go's os/exec words it`, async () => {
    assert.deepEqual((await bash(script)).end, expected);
  });
}

test('the pid is the real one, and the process is reaped when the end event has come', async () => {
  const result = await bash('echo $$');
  assert.equal(result.stdout, `${result.pid}\n`);
  assert.throws(() => process.kill(result.pid, 0), { code: 'ESRCH' });
});

test('no zombies are left by many quick processes, and each has its own exit code', async () => {
  const codes = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => (await bash(`exit ${index}`)).end?.exitCode ?? 0),
  );
  assert.deepEqual(
    codes,
    Array.from({ length: 40 }, (_, index) => index),
  );
  const { stdout } = await bash(`ps -o stat= --ppid ${process.pid}`);
  assert.doesNotMatch(stdout, /Z/);
});

test('a missing program is not_found, one that cannot be run permission_denied, both in the end frame', async () => {
  assert.equal((await run(envd.url, 'nosuch')).error?.code, 'not_found');
  assert.equal((await run(envd.url, '/no/such')).error?.code, 'not_found');
  assert.equal((await run(envd.url, '/etc/passwd')).error?.code, 'permission_denied');
  assert.equal((await run(envd.url, '/etc')).error?.code, 'permission_denied');
  const text = join(envd.dir, 'no-shebang');
  await writeFile(text, 'echo hello\n');
  await chmod(text, 0o755);
  assert.match((await run(envd.url, text)).error?.message ?? '', /exec format error/);
});

test('an argument of 200 KB is refused in clear words, one of 100 KB arrives', async () => {
  const { error } = await run(envd.url, 'echo', ['x'.repeat(200_000)]);
  assert.equal(error?.code, 'invalid_argument');
  assert.match(error?.message ?? '', /too long/);
  assert.equal((await run(envd.url, 'echo', ['x'.repeat(100_000)])).stdout.length, 100_001);
});

test('arguments arrive byte by byte', async () => {
  const args = ['%s|', 'a b', '$HOME `id` "q" \'s\' \\', 'l1\nl2', '', '日本語🦀', '-rf'];
  const { stdout } = await run(envd.url, '/usr/bin/printf', args);
  assert.equal(
    stdout,
    args
      .slice(1)
      .map((text) => `${text}|`)
      .join(''),
  );
});

test('a NUL character in command, argument or variable is refused', async () => {
  for (const request of [
    { cmd: 'a\0b' },
    { cmd: 'echo', args: ['\0'] },
    { cmd: 'env', envs: { A: '\0' } },
    { cmd: 'env', envs: { 'A=B': '1' } },
  ]) {
    const frames = stream(envd.url, 'process.Process/Start', { process: request });
    assert.equal((await collect(frames)).error?.code, 'invalid_argument', JSON.stringify(request));
  }
});

test('the environment: login variables, the sandbox, the platform, the request, in this order', async () => {
  const script =
    'printf \'%s\\0\' "$A" "$B" "$C" "$E2B_SANDBOX" "$E2B_SANDBOX_ID" "$E2B_TEMPLATE_ID" "$LANG" "$USER" "$LOGNAME" "$HOME"';
  const plain = await bash(script);
  assert.deepEqual(plain.stdout.split('\0'), [
    'x=y',
    'l1\nl2',
    '$HOME "q"',
    'true',
    'ix',
    'tx',
    'C.UTF-8',
    'root',
    'root',
    '/root',
    '',
  ]);
  const changed = await bash(script, { envs: { A: 'other', LANG: 'C', HOME: '/tmp' } });
  assert.deepEqual(changed.stdout.split('\0').slice(0, 1), ['other']);
  assert.deepEqual(changed.stdout.split('\0').slice(6), ['C', 'root', 'root', '/tmp', '']);
  const { stdout } = await run(envd.url, '/usr/bin/env', ['-0'], { stdin: false });
  const names = stdout
    .split('\0')
    .map((line) => line.split('=')[0])
    .filter((name) => name !== '')
    .sort();
  assert.deepEqual(names, [
    'A',
    'B',
    'C',
    'E2B_SANDBOX',
    'E2B_SANDBOX_ID',
    'E2B_TEMPLATE_ID',
    'HOME',
    'LANG',
    'LOGNAME',
    'PATH',
    'USER',
  ]);
});

test('programs are looked up in the PATH of the new environment', async () => {
  const bin = join(envd.dir, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'my-tool'), '#!/bin/sh\necho mine\n', { mode: 0o755 });
  assert.equal((await run(envd.url, 'my-tool')).error?.code, 'not_found');
  assert.equal((await run(envd.url, 'my-tool', [], { envs: { PATH: `/nowhere:${bin}` } })).stdout, 'mine\n');
});

test('a process runs as the user with its groups, and an unknown user is unauthenticated', async () => {
  const { stdout } = await bash('id -u; id -g; echo $HOME $USER', {}, { user: 'nobody' });
  assert.equal(stdout, '65534\n65534\n/nonexistent nobody\n');
  const ghost = await bash('id', {}, { user: 'ghost' });
  assert.deepEqual(ghost.error, { code: 'unauthenticated', message: "invalid username: 'ghost'" });
  const number = await bash('id -u; id -g; echo $HOME; pwd', {}, { user: '12345' });
  assert.equal(number.stdout, '12345\n0\n/\n/\n');
});

test('it starts in the folder asked for, else in the home, and a missing one is named', async () => {
  assert.equal((await bash('pwd')).stdout, '/root\n');
  assert.equal((await bash('pwd', { cwd: '/tmp' })).stdout, '/tmp\n');
  assert.equal((await bash('pwd', { cwd: '~' })).stdout, '/root\n');
  assert.equal((await bash('pwd', { cwd: '../tmp' })).stdout, '/tmp\n');
  assert.equal((await bash('pwd', {}, { user: 'nobody' })).stdout, '/\n');
  assert.deepEqual((await bash('pwd', { cwd: '/no/such' })).error, {
    code: 'invalid_argument',
    message: "cwd '/no/such' does not exist",
  });
  assert.equal((await bash('pwd', { cwd: '/etc/passwd' })).error?.code, 'invalid_argument');
  const locked = join(envd.dir, 'locked');
  await mkdir(locked, { mode: 0o700 });
  assert.equal((await bash('pwd', { cwd: locked }, { user: 'nobody' })).error?.code, 'invalid_argument');
});

test('stdout and stderr are pipes that the user can open by name', async () => {
  const result = await bash(
    'echo a > /dev/stdout; echo b > /dev/stderr; echo c | tee /dev/stderr',
    {},
    { user: 'nobody' },
  );
  assert.equal(result.stdout, 'a\nc\n');
  assert.equal(result.stderr, 'b\nc\n');
});

test('nothing of envd is inherited: descriptors, signals, session, umask', async () => {
  const { stdout } = await bash('ls /proc/self/fd; umask; ps -o pid=,pgid=,sid= $$; trap');
  const [zero, one, two, three, four] = stdout.split('\n');
  // ls itself has the folder open as the fourth
  assert.deepEqual([zero, one, two, three, four], ['0', '1', '2', '3', '0022']);
  const ids = stdout.split('\n')[5]?.trim().split(/\s+/);
  assert.deepEqual(new Set(ids).size, 1);
  const masks = await run(envd.url, 'grep', ['-E', '^Sig(Blk|Ign)', '/proc/self/status'], { stdin: false });
  assert.match(masks.stdout, /SigBlk:\t0+\nSigIgn:\t0+\n/);
});

test('without stdin asked for, it is /dev/null, and the process ends at once', async () => {
  const result = await run(envd.url, 'cat', [], { stdin: false });
  assert.equal(result.end?.status, 'exit status 0');
});

test('List shows what runs, with configuration and tag, and no longer what has ended', async () => {
  const frames = start(envd.url, 'sleep', ['30'], { tag: 'nap', envs: { X: '1' }, cwd: '/tmp' });
  const pid = (await frames.next()).value?.message.event?.start?.pid;
  const { body } = await unary(envd.url, 'process.Process/List', {});
  assert.deepEqual(body, {
    processes: [{ config: { cmd: 'sleep', args: ['30'], envs: { X: '1' }, cwd: '/tmp' }, pid, tag: 'nap' }],
  });
  await unary(envd.url, 'process.Process/SendSignal', { process: { tag: 'nap' }, signal: 9 });
  await collect(frames);
  assert.deepEqual((await unary(envd.url, 'process.Process/List', {})).body, {});
});

test('calls about a process that is not there are not_found', async () => {
  for (const [method, body] of [
    ['SendSignal', { signal: 'SIGNAL_SIGKILL' }],
    ['SendInput', { input: { stdin: 'YQ==' } }],
    ['CloseStdin', {}],
    ['Update', { pty: { size: { cols: 1, rows: 1 } } }],
  ] as const) {
    const answer = await unary(envd.url, `process.Process/${method}`, { process: { pid: 4_000_000 }, ...body });
    assert.equal(answer.status, 404, method);
    assert.equal(answer.body.code, 'not_found');
  }
  const connect = await collect(stream(envd.url, 'process.Process/Connect', { process: { pid: 4_000_000 } }));
  assert.equal(connect.error?.code, 'not_found');
});
