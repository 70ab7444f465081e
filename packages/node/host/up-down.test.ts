import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { killAndWait } from '@aenv/platform/process/identity.ts';
import { loadConfig } from '../config/load.ts';
import { findDaemon } from './daemon/state.ts';
import { down } from './down.ts';
import { RecordedOutput } from './testing/recorded-output.ts';
import { type UpOptions, up } from './up.ts';

const FAKE = fileURLToPath(new URL('testing/fake-daemon.mjs', import.meta.url));

let top = '';

beforeEach(async () => {
  top = await mkdtemp(join(tmpdir(), 'aenv-up-'));
});

afterEach(async () => {
  const left = await findDaemon(join(top, 'run'));
  if (left !== undefined) await killAndWait(left.process);
  await rm(top, { recursive: true, force: true });
});

function environment(behaviour = 'good'): NodeJS.ProcessEnv {
  const { PATH } = process.env;
  const paths = { AENV_HOME: join(top, 'home'), AENV_RUNTIME: join(top, 'run'), AENV_LISTEN: '127.0.0.1:0' };
  return { PATH, ...paths, FAKE_DAEMON: behaviour };
}

function optionsOf(output: RecordedOutput, behaviour?: string, changes: Partial<UpOptions> = {}): UpOptions {
  const env = environment(behaviour);
  return {
    config: loadConfig({ env }),
    foreground: false,
    env,
    output,
    signal: new AbortController().signal,
    uid: 0,
    entry: FAKE,
    prepare: async () => {},
    startTimeoutMs: 20_000,
    ...changes,
  };
}

async function startFake(behaviour = 'good'): Promise<RecordedOutput> {
  const output = new RecordedOutput();
  await up(optionsOf(output, behaviour));
  return output;
}

async function runDown(timeoutSeconds?: number): Promise<string> {
  const output = new RecordedOutput();
  await down(loadConfig({ env: environment() }), timeoutSeconds, output);
  return output.text;
}

test('up starts the daemon, away from the folder of the caller, and tells URL, key file and what is next', async () => {
  const output = await startFake();
  const state = JSON.parse(await readFile(join(top, 'run', 'daemon.json'), 'utf8'));
  assert.equal(state.cwd, '/');
  assert.equal(state.listen, '127.0.0.1:0');
  assert.match(output.text, new RegExp(`URL +${state.url}\n`));
  assert.match(output.text, new RegExp(`key +${join(top, 'home', 'secrets', 'api-key')}\n`));
  assert.match(output.text, /next +aenv start base/);
  assert.equal((await stat(join(top, 'home', 'logs', 'daemon.log'))).mode & 0o777, 0o600);
});

test('up prepares the host first, and only when no daemon runs', async () => {
  let prepared = 0;
  const prepare = async () => {
    prepared++;
    assert.equal(await findDaemon(join(top, 'run')), undefined);
  };
  await up(optionsOf(new RecordedOutput(), 'good', { prepare }));
  const again = new RecordedOutput();
  await up(optionsOf(again, 'good', { prepare, uid: 1000 }));
  assert.equal(prepared, 1);
  assert.match(again.text, /runs already[\s\S]*URL/);
});

test('up tells the last lines of a daemon that does not come up, and leaves none behind', async () => {
  await assert.rejects(startFake('fails'), (error: unknown) => {
    assert.ok(error instanceof AenvError);
    assert.equal(error.code, 'daemon_failed');
    assert.match(error.message, /ended with exit code 3/);
    assert.match(error.message, /error: the ledger is damaged \{"file":"aenv.db"\}/);
    assert.match(error.remediation, /daemon\.log/);
    return true;
  });
});

test('a daemon that never becomes healthy is ended after the time', async () => {
  const options = optionsOf(new RecordedOutput(), 'sick', { startTimeoutMs: 1500 });
  await assert.rejects(up(options), { code: 'daemon_failed', message: /did not answer within/ });
  assert.equal(await findDaemon(join(top, 'run')), undefined);
});

test('an interrupted start leaves no daemon behind', async () => {
  const abort = new AbortController();
  const starting = up(optionsOf(new RecordedOutput(), 'sick', { signal: abort.signal }));
  while ((await findDaemon(join(top, 'run'))) === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
  abort.abort(new Error('Ctrl-C'));
  await assert.rejects(starting, /Ctrl-C/);
  assert.equal(await findDaemon(join(top, 'run')), undefined);
});

test('a port that is taken is told before anything is prepared', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    const address = server.address();
    assert.ok(typeof address === 'object' && address !== null);
    const env = { ...environment(), AENV_LISTEN: `127.0.0.1:${address.port}` };
    const prepare = () => assert.fail('prepared');
    const options = optionsOf(new RecordedOutput(), 'good', { env, config: loadConfig({ env }), prepare });
    await assert.rejects(up(options), { code: 'port_in_use', message: new RegExp(String(address.port)) });
  } finally {
    server.close();
  }
});

test('up needs root, down does not need a daemon', async () => {
  await assert.rejects(up(optionsOf(new RecordedOutput(), 'good', { uid: 1000 })), {
    code: 'host_unsupported',
    message: /need root/,
  });
  assert.equal(await runDown(), 'No daemon runs.');
});

test('down ends the daemon and tells what became of the sandboxes, as far as the daemon could say', async () => {
  await startFake('busy');
  const [first, ...lines] = (await runDown()).split('\n');
  assert.match(first ?? '', /^Daemon ended \(\d+\.\d s\)\.$/);
  assert.deepEqual(lines, [
    'Paused, to go on at the next start: 2 sandboxes.',
    'Ended: 1 sandbox.',
    '  ic could not be paused: no space left',
    'Not done in time, and found by the next start: id.',
  ]);
  assert.equal(await findDaemon(join(top, 'run')), undefined);
  assert.equal(await runDown(), 'No daemon runs.');
  // What another daemon has left says nothing of this one.
  await startFake();
  assert.match(await runDown(), /^Daemon ended \([^)]+\)\.$/);
});

test('down does not wait for ever', async () => {
  await startFake('stubborn');
  await assert.rejects(runDown(1), { code: 'daemon_failed', message: /has not ended within 1 s/ });
  assert.ok(await findDaemon(join(top, 'run')));
});

test('a state file that a crash left, or whose pid is another process now, is no daemon', async () => {
  await mkdir(join(top, 'run'));
  const write = (content: string) => writeFile(join(top, 'run', 'daemon.json'), content);
  await write(JSON.stringify({ pid: process.pid, startTime: 1, url: 'http://127.0.0.1:1' }));
  assert.equal(await runDown(), 'No daemon runs.');
  await write('{"pid":');
  assert.equal(await runDown(), 'No daemon runs.');
});
