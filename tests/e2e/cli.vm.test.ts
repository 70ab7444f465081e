import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { aenv, type CliOptions } from '../harness/cli.ts';
import { TestDaemon } from '../harness/daemon.ts';

const SOAK = process.env.AENV_SOAK === '1';

let daemon: TestDaemon;
let id: string;
let scratch: string;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'aenv-cli-'));
  daemon = await TestDaemon.start();
  const started = await aenv(daemon, [
    'start',
    '-d',
    'base',
    '--timeout',
    '900',
    '--env',
    'A=x=y',
    '--metadata',
    'k=v w',
  ]);
  assert.equal(started.code, 0, started.stderr);
  id = started.stdout.toString().trim();
  assert.match(id, /^i[a-z0-9]{20}$/);
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
  await rm(scratch, { recursive: true, force: true });
});

const exec = (words: readonly string[], options: CliOptions = {}) => aenv(daemon, ['exec', ...words], options);

test('a command gets its words as they are, without a shell in between', async () => {
  const result = await exec([id, 'printf', '%s|', 'a b', '$HOME', '"q"', "it's", '-x', '--user']);
  assert.equal(result.stdout.toString(), 'a b|$HOME|"q"|it\'s|-x|--user|');
  assert.equal(result.code, 0);
});

test('exit codes as a shell gives them', async () => {
  const cases: [string[], number][] = [
    [['true'], 0],
    [['sh', '-c', 'exit 300'], 44],
    [['sh', '-c', 'kill -9 $$'], 137],
    [['sh', '-c', 'kill -15 $$'], 143],
    [['nosuch'], 127],
    [['/etc/passwd'], 126],
  ];
  for (const [words, code] of cases) {
    const result = await exec([id, ...words]);
    assert.equal(result.code, code, `${words.join(' ')}: ${result.stderr}`);
  }
  assert.equal((await exec(['inosuchsandbox0000000', 'true'])).code, 125);
});

test('stdout and stderr stay apart', async () => {
  const result = await exec([id, 'sh', '-c', 'echo out; echo err >&2']);
  assert.deepEqual([result.stdout.toString(), result.stderr], ['out\n', 'err\n']);
});

test('stdin is empty unless asked for, then passed on whole', async () => {
  assert.equal((await exec([id, 'cat'], { input: 'ignored' })).stdout.toString(), '');
  const small = await exec(['-i', id, 'cat'], { input: 'abc' });
  assert.deepEqual([small.stdout.toString(), small.code], ['abc', 0]);
  const data = randomBytes((SOAK ? 64 : 3) * 1024 * 1024);
  const big = await exec(['-i', id, 'sha256sum'], { input: data, timeoutMs: 600_000 });
  assert.equal(big.stdout.toString().split(' ')[0], createHash('sha256').update(data).digest('hex'));
});

test('a program may end before it has read its input', async () => {
  const result = await exec(['-i', id, 'head', '-c', '3'], { input: 'x'.repeat(500_000) });
  assert.deepEqual([result.stdout.toString(), result.code], ['xxx', 0]);
});

test('user, working directory and variables', async () => {
  const result = await exec([
    '--user',
    'root',
    '--cwd',
    '/tmp',
    '--env',
    'B=l1\nl2',
    id,
    'sh',
    '-c',
    'id -u; pwd; echo "$A $B"',
  ]);
  assert.equal(result.stdout.toString(), '0\n/tmp\nx=y l1\nl2\n');
  const ghost = await exec(['--user', 'ghost', id, 'true']);
  assert.equal(ghost.code, 125);
  assert.match(ghost.stderr, /invalid username: 'ghost'/);
  const nowhere = await exec(['--cwd', '/nowhere', id, 'true']);
  assert.equal(nowhere.code, 125);
  assert.match(nowhere.stderr, /cwd '\/nowhere' does not exist/);
});

test('an argument of 100 KB is passed on whole', async () => {
  const result = await exec([id, 'sh', '-c', 'echo $1 | wc -c', 'sh', 'x'.repeat(100_000)]);
  assert.equal(result.stdout.toString(), '100001\n');
});

test('a terminal: size, exit code, and the local terminal is left as it was', async () => {
  const script = [
    'stty rows 30 cols 100',
    'stty -g > before',
    `${resolve('aenv')} connect ${id}; echo "code $?" > code`,
    'stty -g > after',
  ].join('\n');
  await writeFile(join(scratch, 'session.sh'), script);
  const child = spawn('script', ['-qefc', 'sh session.sh', '/dev/null'], {
    cwd: scratch,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...daemon.clientEnv },
  });
  let seen = '';
  let typed = false;
  child.stdout.on('data', (chunk: Buffer) => {
    seen += chunk.toString();
    if (!typed && /\$ /.test(seen)) {
      typed = true;
      child.stdin.write('stty size; echo "$TERM"; exit 7\n');
    }
  });
  await new Promise((done) => child.once('close', done));
  assert.match(seen, /30 100/);
  assert.equal(await readFile(join(scratch, 'code'), 'utf8'), 'code 7\n');
  assert.equal(await readFile(join(scratch, 'after'), 'utf8'), await readFile(join(scratch, 'before'), 'utf8'));
});

test('a shell whose input is a file reads it as typed, and ends where it ends', async () => {
  const { code, stdout } = await aenv(daemon, ['connect', id], { input: 'echo "<$((40 + 2))>"\n' });
  assert.deepEqual([code, stdout.toString().includes('<42>')], [0, true], stdout.toString());
});

test('a tree goes up and comes down with links, modes, times, empty folders; a fifo is skipped with a warning', async () => {
  const from = join(scratch, 'tree');
  await mkdir(join(from, 'empty'), { recursive: true });
  const make = [
    'echo text > plain; chmod 0600 plain; echo s > suid; chmod 4755 suid; echo x > run; chmod 0755 run',
    'mkdir -p d/e; echo deep > d/e/f; ln -s plain rel; ln -s /etc/hosts abs; ln -s nowhere dangling; ln -s loop loop',
    'ln plain d/hard; mkfifo pipe; touch -h -d "2001-02-03 04:05:06" plain run d/e abs; printf 日本 > "名 前"',
  ].join('; ');
  execFileSync('sh', ['-c', make], { cwd: from });
  const up = await aenv(daemon, ['upload', id, from, 'tree']);
  assert.equal(up.code, 0, up.stderr);
  assert.match(up.stderr, /skipped .*pipe/);
  assert.equal((await exec([id, 'stat', '-c', '%a %U', 'tree/suid'])).stdout.toString(), '4755 user\n');
  const down = await aenv(daemon, ['download', id, 'tree', join(scratch, 'back')]);
  assert.equal(down.code, 0, down.stderr);
  execFileSync('rm', [join(from, 'pipe')]);
  execFileSync('diff', ['-r', '--no-dereference', from, join(scratch, 'back')]);
  const list = (root: string) =>
    execFileSync('find', ['.', '-mindepth', '1', '-printf', '%P %y %m %n %Ts %l\n'], { cwd: root, encoding: 'utf8' })
      .split('\n')
      .sort();
  assert.deepEqual(list(join(scratch, 'back')), list(from));
});

test('a download replaces nothing without being told to', async () => {
  await writeFile(join(scratch, 'kept'), 'mine');
  await exec(['-i', id, 'sh', '-c', 'cat > theirs'], { input: 'theirs' });
  const refused = await aenv(daemon, ['download', id, 'theirs', join(scratch, 'kept')]);
  assert.equal(refused.code, 1);
  assert.equal(await readFile(join(scratch, 'kept'), 'utf8'), 'mine');
  assert.equal((await aenv(daemon, ['download', '--force', id, 'theirs', join(scratch, 'kept')])).code, 0);
  assert.equal(await readFile(join(scratch, 'kept'), 'utf8'), 'theirs');
  assert.match((await aenv(daemon, ['download', id, 'missing'])).stderr, /missing/);
});

test('ls, get, timeout and template ls: JSON in a pipe, a table when asked', async () => {
  const list = JSON.parse((await aenv(daemon, ['ls', '--metadata', 'k=v w'])).stdout.toString()) as {
    sandboxID: string;
  }[];
  assert.deepEqual(
    list.map((entry) => entry.sandboxID),
    [id],
  );
  const none = await aenv(daemon, ['ls', '--metadata', 'k=other', '--output', 'json']);
  assert.deepEqual(JSON.parse(none.stdout.toString()), []);
  assert.match(
    (await aenv(daemon, ['ls', '--output', 'table'])).stdout.toString(),
    new RegExp(`^ID .*\n${id} +base +running`),
  );
  assert.equal((await aenv(daemon, ['timeout', id, '500'])).code, 0);
  const get = await aenv(daemon, ['get', id]);
  const info = JSON.parse(get.stdout.toString()) as { endAt: string; state: string };
  assert.equal(info.state, 'running');
  const left = Date.parse(info.endAt) - Date.now();
  assert.ok(left > 480_000 && left < 505_000, `${left}`);
  assert.ok(!get.stdout.toString().includes('envdAccessToken'), 'no secret is printed');
  assert.match((await aenv(daemon, ['template', 'ls', '--output', 'table'])).stdout.toString(), /base/);
});

test('run starts, executes and deletes, whatever the command does', async () => {
  const result = await aenv(daemon, ['run', 'base', '--metadata', 'x=run', '--', 'sh', '-c', 'echo once; exit 5']);
  assert.deepEqual([result.stdout.toString(), result.code], ['once\n', 5], result.stderr);
  const left = await aenv(daemon, ['ls', '--metadata', 'x=run', '--output', 'json']);
  assert.deepEqual(JSON.parse(left.stdout.toString()), []);
});

test('rm deletes, and says which ones it could not', async () => {
  const other = (await aenv(daemon, ['start', '-d', 'base'])).stdout.toString().trim();
  const result = await aenv(daemon, ['rm', other, 'inosuchsandbox0000000']);
  assert.equal(result.stdout.toString(), `${other}\n`);
  assert.equal(result.code, 1);
  assert.match(result.stderr, /inosuchsandbox0000000/);
});

test('auth stores what the server accepts, in a file for its owner only', async () => {
  const file = join(scratch, 'credentials.json');
  const env = { AENV_CREDENTIALS: file, AENV_API_KEY: '', AENV_URL: '' };
  const wrong = await aenv(daemon, ['auth', '--url', daemon.url], { input: 'e2b_wrong\n', env });
  assert.equal(wrong.code, 1);
  const right = await aenv(daemon, ['auth', '--url', daemon.url], { input: `${daemon.apiKey}\n`, env });
  assert.equal(right.code, 0, right.stderr);
  assert.equal(execFileSync('stat', ['-c', '%a', file], { encoding: 'utf8' }), '600\n');
  assert.equal((await aenv(daemon, ['ls'], { env })).code, 0);
});

test('a wrong call is 2 with the usage, a server that is away is told with its address', async () => {
  assert.equal((await aenv(daemon, ['exec'])).code, 2);
  assert.equal((await aenv(daemon, ['nosuch'])).code, 2);
  const away = await aenv(daemon, ['ls', '--url', 'http://127.0.0.1:9']);
  assert.equal(away.code, 1);
  assert.match(away.stderr, /cannot reach http:\/\/127\.0\.0\.1:9/);
});
