import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterEach, beforeEach, test } from 'node:test';
import { nativeForTests } from '../testing/native.ts';
import { type Launched, type LaunchOptions, launch } from './launch.ts';
import { StandBy, standByRequest } from './stand-by.ts';

const native = nativeForTests();
const USER = { name: 'root', uid: 0, gid: 0, groups: [0], home: '/root' };

let standBy: StandBy;
beforeEach(() => {
  standBy = new StandBy(native);
});
afterEach(() => standBy.close());

/** Those that wait below this process. */
function waiting(): number[] {
  const lines = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', `${process.pid}`], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => line.endsWith(' spawn --wait')).map((line) => Number.parseInt(line, 10));
}

function start(script: string, more: Partial<LaunchOptions> = {}): Promise<Launched> {
  return launch({
    ...{ native, command: '/bin/sh', args: ['-c', script], environment: { A: 'b  c=d' }, user: USER, cwd: '/tmp' },
    ...{ stdin: true, standBy, ...more },
  });
}

async function outputOf({ outputs }: Launched): Promise<string> {
  let text = '';
  for await (const chunk of outputs[0]?.stream ?? []) text += chunk;
  return text;
}

test('the one that waits becomes the program: same process, and folder, variables, arguments and stdin as asked', async () => {
  standBy.refill();
  standBy.refill();
  const [pid, ...others] = waiting();
  assert.deepEqual(others, []);
  const program = await start('pwd; echo "$A"; tr a-z A-Z; env | grep -c ""');
  assert.equal(program.pid, pid);
  program.input?.end('over stdin\n');
  assert.equal(await outputOf(program), '/tmp\nb  c=d\nOVER STDIN\n2\n');
  assert.deepEqual(await program.exited, { code: 0 });
  assert.deepEqual(await (await start('kill -9 $$')).exited, { signal: 9 });
});

test('another one waits soon after one was taken, or at once when asked; none after the end', async () => {
  standBy.refill();
  const program = await start('read x', {});
  while (waiting().length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  program.input?.end();
  await program.exited;
  assert.equal(waiting().length, 1);
  standBy.close();
  while (waiting().length > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  standBy.refill();
  assert.deepEqual(waiting(), []);
  assert.deepEqual(await (await start('exit 3')).exited, { code: 3 });
  assert.deepEqual(waiting(), []);
});

test('one that somebody has ended is no harm, nor is one that is ended when it is told what to be', async () => {
  standBy.refill();
  const [pid = 0] = waiting();
  process.kill(pid, 'SIGKILL');
  // Not noticed here: nothing has been waited for.
  assert.equal(await outputOf(await start('echo fine')), 'fine\n');
  standBy.refill();
  process.kill(waiting()[0] ?? 0, 'SIGKILL');
  while (waiting().length > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(await outputOf(await start('echo fine')), 'fine\n');
});

test('one that somebody has stopped is given up, and the program is started without it', async () => {
  standBy = new StandBy(native, 200);
  standBy.refill();
  const [pid = 0] = waiting();
  process.kill(pid, 'SIGSTOP');
  const program = await start('echo fine');
  assert.equal(await outputOf(program), 'fine\n');
  assert.notEqual(program.pid, pid);
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

/** Whether a process has said what it is going to be, and waits to be told to go on. */
function hasAnswered(pid: number): boolean {
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  const [, state] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ');
  return links.filter((link) => link.startsWith('pipe:')).length > 1 && state?.startsWith('S') === true;
}

test('one that has answered is not given up where this process had no turn for so long that its time is over', async () => {
  standBy = new StandBy(native, 50);
  standBy.refill();
  const [pid = 0] = waiting();
  const starting = start('echo fine');
  const still = new Int32Array(new SharedArrayBuffer(4));
  const begin = performance.now();
  while (performance.now() - begin < 10_000 && !hasAnswered(pid)) Atomics.wait(still, 0, 0, 5);
  Atomics.wait(still, 0, 0, Math.max(0, begin + 100 - performance.now()));
  const program = await starting;
  assert.equal(program.pid, pid);
  assert.equal(await outputOf(program), 'fine\n');
});

test('what cannot be run is refused as without one that waits', async () => {
  const code = (expected: string) => (error: unknown) =>
    error instanceof Error && 'code' in error && error.code === expected;
  const cases: [Partial<LaunchOptions>, string][] = [
    [{ command: '/no/such' }, 'program_not_found'],
    [{ command: '/etc/passwd' }, 'program_not_executable'],
    [{ args: ['-c', '\0'] }, 'invalid_request'],
    [{ args: ['-c', 'x'.repeat(200_000)] }, 'arguments_too_long'],
    [{ args: Array.from({ length: 200 }, () => 'x'.repeat(100_000)) }, 'arguments_too_long'],
    [{ cwd: '/no/such' }, 'path_invalid'],
  ];
  for (const [options, expected] of cases) {
    standBy.refill();
    await assert.rejects(start('true', options), code(expected), expected);
  }
});

test('what it is told: three numbers, then arguments and variables, each with a NUL byte behind it', () => {
  const request = standByRequest(['spawn', '--', 'é'], { A: '1', B: '' });
  assert.equal(request?.subarray(12).toString(), 'spawn\0--\0é\0A=1\0B=\0');
  const numbers = new Uint32Array(new Uint8Array(request?.subarray(0, 12) ?? []).buffer);
  assert.deepEqual([...numbers], [19, 3, 2]);
  assert.equal(standByRequest(['a\0b'], {}), undefined);
});
