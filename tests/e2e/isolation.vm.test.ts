import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { after, before, test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import type { Sandbox } from 'e2b';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { OutsideWorld } from '../harness/netns.ts';
import { until } from '../harness/until.ts';

let daemon: TestDaemon;
let world: OutsideWorld;
let listener: ChildProcess;
let one: Sandbox;
let two: Sandbox;

before(async () => {
  world = await OutsideWorld.create('iso');
  const script = `require('node:http').createServer((q, s) => s.end('outside ' + q.socket.remoteAddress)).listen(8080)`;
  listener = spawn('ip', ['netns', 'exec', world.namespace, process.execPath, '-e', script], { stdio: 'ignore' });
  daemon = await TestDaemon.start();
  [one, two] = await Promise.all([createSandbox(daemon), createSandbox(daemon)]);
});
after(async () => {
  listener?.kill('SIGKILL');
  await daemon?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

/** One line: `open`, or how a TCP connection failed and after how many seconds. */
async function dial(sandbox: Sandbox, address: string, port: number): Promise<{ open: boolean; seconds: number }> {
  const program = [
    'import socket,time,sys',
    't=time.time()',
    's=socket.socket(); s.settimeout(5)',
    'r="open"',
    'try: s.connect((sys.argv[1],int(sys.argv[2])))',
    'except OSError as e: r="closed"',
    'print(r,time.time()-t)',
  ].join('\n');
  const { stdout } = await sandbox.commands.run(`python3 -c '${program}' ${address} ${port}`);
  const [word, seconds] = stdout.trim().split(' ');
  return { open: word === 'open', seconds: Number(seconds) };
}

test('each sandbox has a kernel of its own, which is not the host kernel', async () => {
  const read = (sandbox: Sandbox) => shell(sandbox, 'cat /proc/sys/kernel/random/boot_id; uname -r');
  const [a, b] = await Promise.all([read(one), read(two)]);
  assert.notEqual(a.split('\n')[0], b.split('\n')[0]);
  assert.match(a, /^[0-9a-f-]{36}\n6\.1\./);
});

test('the outside is reachable', async () => {
  await until(async () => (await shell(one, `curl -s -m 5 http://${world.address}:8080/`)).startsWith('outside'), {
    timeoutMs: 30_000,
    what: 'an answer from outside',
  });
});

test('no address of the host gives access to its API or any other service', async () => {
  const port = Number(new URL(daemon.url).port);
  const addresses = new Set(['127.0.0.1', '169.254.0.22', '198.51.100.1']);
  for (const list of Object.values(networkInterfaces())) {
    for (const entry of list ?? []) if (entry.family === 'IPv4') addresses.add(entry.address);
  }
  for (const address of addresses) {
    const result = await dial(one, address, port);
    assert.equal(result.open, false, `${address}:${port} is open from inside`);
    assert.ok(result.seconds < 2, `${address} took ${result.seconds} s to be refused`);
  }
});

test('another sandbox is out of reach, at its host-side address and by its own', async () => {
  await two.commands.run('python3 -m http.server 8080', { background: true });
  await until(async () => (await daemon.port(two.sandboxId, 8080, '/')).status === 200, {
    timeoutMs: 60_000,
    what: 'the other sandbox serves',
  });
  const hostSide = Object.entries(networkInterfaces())
    .filter(([name]) => /^ae.*v\d+$/.test(name))
    .flatMap(([, list]) => list ?? [])
    .filter((entry) => entry.family === 'IPv4')
    .map((entry) => entry.address);
  assert.ok(hostSide.length >= 2, 'two slots have host-side addresses');
  for (const address of hostSide) {
    const last = Number(address.split('.')[3]);
    // The slot's own address is the next one of its /30.
    const slot = address.replace(/\d+$/, String(last + 1));
    for (const target of [address, slot]) assert.equal((await dial(one, target, 8080)).open, false, target);
  }
});

test('metadata and private addresses are refused at once', async () => {
  for (const address of ['169.254.169.254', '10.0.0.1', '172.16.0.1', '192.168.0.1', '100.64.0.1']) {
    const result = await dial(one, address, 80);
    assert.equal(result.open, false, address);
    assert.ok(result.seconds < 2, `${address} took ${result.seconds} s`);
  }
});

test('IPv6 is closed', async () => {
  assert.equal((await shell(one, 'cat /proc/net/if_inet6 2>/dev/null')).trim(), '');
});

test('without internet access nothing is reachable, and names fail at once', async () => {
  await using closed = await createSandbox(daemon, { allowInternetAccess: false });
  const result = await dial(closed, world.address, 8080);
  assert.equal(result.open, false);
  assert.ok(result.seconds < 2, `took ${result.seconds} s`);
  const lookup = await shell(closed, 'time -p getent hosts example.com; echo "code $?"');
  assert.match(lookup, /code [^0]|real/);
  const seconds = Number(/real ([\d.]+)/.exec(lookup)?.[1] ?? '99');
  assert.ok(seconds < 3, `a name took ${seconds} s to fail`);
});

test('the VMM process has no capability, a user of its own and cannot gain privileges', async () => {
  const { stdout } = await run(['pgrep', '-f', `qemu-system.*${daemon.runtime}`]);
  const pids = stdout.trim().split('\n');
  assert.ok(pids.length >= 2);
  const uids = new Set<string>();
  for (const pid of pids) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    assert.match(status, /CapEff:\t0+\n/);
    assert.match(status, /CapBnd:\t0+\n/);
    assert.match(status, /NoNewPrivs:\t1\n/);
    assert.match(status, /Seccomp:\t2\n/);
    uids.add(/Uid:\t(\d+)/.exec(status)?.[1] ?? '');
  }
  assert.equal(uids.size, pids.length);
  assert.ok(!uids.has('0'));
});
