import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '@aenv/platform/process/run.ts';
import { Sandbox, type SandboxInfo } from 'e2b';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

/**
 * Counts in memory, in an open file that has no name any more and over a connection to itself, changes a page of its
 * memory each time, and tells of all.
 */
const COUNTER = `
import hashlib, os, socket, time
held = open('/root/held', 'w+')
os.unlink('/root/held')
secret = os.urandom(1 << 20)
pages = bytearray(1 << 24)
marks = {}
server = socket.create_server(('127.0.0.1', 0))
here = socket.create_connection(server.getsockname())
there, _ = server.accept()
n = 0
while True:
    n += 1
    held.write(str(n) + '\\n')
    held.flush()
    held.seek(0)
    whole = held.read().split() == [str(i) for i in range(1, n + 1)]
    here.sendall(b'%d' % n)
    whole = whole and int(there.recv(64)) == n
    marks[n * 4096 % len(pages)] = n % 256
    pages[n * 4096 % len(pages)] = n % 256
    whole = whole and all(pages[at] == mark for at, mark in marks.items())
    with open('/run/counter.new', 'w') as f:
        f.write(' '.join([str(os.getpid()), str(n), hashlib.sha256(secret).hexdigest(), str(whole)]))
    os.rename('/run/counter.new', '/run/counter')
    time.sleep(0.2)
`;

/** As many pauses in a row as a sandbox must survive with everything that it has are in snapshots.vm.test.ts. */
const SOAK = process.env.AENV_SOAK === '1';
const ROUNDS = SOAK ? 10 : 4;
/** T01: so long a pause is, and so long the clock of the guest is right after it, `ms`. */
const PAUSED_MS = SOAK ? 90_000 : 4_000;
const RUNS_ON_MS = SOAK ? 600_000 : 0;
/** T06: what is left of its time when it is paused, and how long it is paused beyond that, `ms`. */
const TIME_LEFT_MS = SOAK ? 25_000 : 6_000;
const OVERDUE_MS = SOAK ? 35_000 : 1_500;

/** A client of a stream is told of the pause, at the latest, `ms`. */
const STREAM_ENDS_MS = 5_000;

let daemon: TestDaemon;
let sandbox: Sandbox;
before(async () => {
  daemon = await TestDaemon.start({ env: { AENV_SHUTDOWN_ACTION: 'pause' } });
  sandbox = await createSandbox(daemon);
  await sandbox.files.write('/root/counter.py', COUNTER, { user: 'root' });
  await sandbox.commands.run('python3 /root/counter.py', { background: true, timeoutMs: 0, user: 'root' });
  await until(async () => (await count()).n > 2, { timeoutMs: 60_000, what: 'the counter counts' });
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

const connection = () => ({
  ...{ apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey, requestTimeoutMs: 180_000 },
});

async function root(command: string): Promise<string> {
  return (await sandbox.commands.run(command, { user: 'root', timeoutMs: 60_000 })).stdout.trim();
}

async function count() {
  const [pid = '', n = '', secret = '', whole = ''] = (await root('cat /run/counter')).split(' ');
  return { pid, n: Number(n), secret, whole };
}

/** The guest, which is asked first of all, and the host agree on the time. */
async function clockIsRight(more = 'true'): Promise<void> {
  const asked = Date.now();
  const clock = Number(await root(`date +%s%3N && ${more}`));
  assert.ok(clock > asked - 1000 && clock < Date.now() + 1000, `the guest is ${clock - asked} ms ahead`);
}

/** A certificate that is valid from now on, by the clock of the host. */
async function certificate(): Promise<string> {
  const names = ['-subj', '/CN=made during the pause', '-days', '1'];
  const made = await run(['openssl', 'req', '-x509', '-newkey', 'ed25519', '-nodes', '-keyout', '-', ...names]);
  return made.stdout;
}

async function listed(state: 'running' | 'paused'): Promise<string[]> {
  const page: SandboxInfo[] = await Sandbox.list({ ...connection(), query: { state: [state] } }).nextItems();
  return page.map(({ sandboxId }) => sandboxId);
}

test('a paused sandbox does nothing, is listed as paused, and goes on where it was, again and again', async () => {
  const id = sandbox.sandboxId;
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: 0, user: 'root', onData: () => {} });
  terminal.wait().catch(() => {});
  const type = (line: string) => sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode(`${line}\n`));
  await type('mine=kept; cd /usr');
  const token = (await detail(id)).envdAccessToken;
  const endless = { background: true, timeoutMs: 0 } as const;
  await sandbox.commands.run('echo served > /tmp/hello && cd /tmp && exec python3 -m http.server 8000', endless);
  const hello = () => daemon.port(id, 8000, '/hello');
  await until(async () => (await hello()).status === 200, { timeoutMs: 60_000, what: 'the server answers' });
  const stream = await sandbox.commands.run('while true; do date; sleep 0.2; done', endless);
  const ended = stream.wait().then(
    () => assert.fail('a stream that breaks is no end'),
    () => Date.now(),
  );
  let last = await count();
  let made = '';
  for (let round = 1; round <= ROUNDS; round++) {
    await until(async () => (await count()).n > last.n, { timeoutMs: 30_000, what: 'the counter goes on' });
    await root(`head -c 3000000 /dev/urandom > /root/disk${round} && sha256sum /root/disk* > /root/sums`);
    const begin = Date.now();
    assert.equal(await sandbox.pause(), true);
    if (round === 1) {
      assert.ok(
        (await ended) - begin < STREAM_ENDS_MS,
        `the stream ended ${(await ended) - begin} ms after it was asked`,
      );
      const refused = await hello();
      assert.equal(refused.status, 502);
      const { code, message } = (await refused.json()) as { code: number; message: string };
      assert.equal(code, 502);
      assert.match(message, /paused/);
      assert.equal(await sandbox.isRunning(), false);
      assert.deepEqual([await listed('paused'), await listed('running')], [[id], []]);
      assert.equal(await sandbox.pause(), false, 'it is paused already');
      await sleep(PAUSED_MS);
      made = await certificate();
    }
    await sandbox.connect({ timeoutMs: 300_000 });
    await clockIsRight('cd /root && sha256sum --check --quiet sums');
    if (round === 1) {
      await sandbox.files.write('/run/made.pem', made, { user: 'root' });
      assert.match(await root('openssl verify -CAfile /run/made.pem /run/made.pem'), /: OK$/);
    }
    const resumed = await count();
    assert.deepEqual([resumed.pid, resumed.secret, resumed.whole], [last.pid, last.secret, 'True']);
    assert.ok(resumed.n > last.n);
    last = resumed;
    for (let call = 0; round === 1 && call < 20; call++) assert.equal(await (await hello()).text(), 'served\n');
  }
  assert.equal(await sandbox.isRunning(), true);
  assert.equal((await detail(id)).envdAccessToken, token);
  await type('echo "$mine $PWD" > /run/terminal');
  await until(async () => (await root('cat /run/terminal')) === 'kept /usr', {
    ...{ timeoutMs: 30_000, what: 'the shell of the terminal is the one from before' },
  });
  await sandbox.pty.kill(terminal.pid);
  await sandbox.setTimeout(RUNS_ON_MS + 600_000);
  await sleep(RUNS_ON_MS);
  await clockIsRight();
});

test('the end of its time pauses a sandbox that asked for it, and traffic brings it back', async () => {
  const other = await createSandbox(daemon, { lifecycle: { onTimeout: 'pause', autoResume: true } });
  await other.commands.run('echo awake > /tmp/hello && cd /tmp && exec python3 -m http.server 8000', {
    ...{ background: true, timeoutMs: 0 },
  });
  const hello = async () => await daemon.port(other.sandboxId, 8000, '/hello');
  await until(async () => (await hello()).status === 200, { timeoutMs: 60_000, what: 'the server answers' });
  await other.setTimeout(1000);
  const { sandboxId } = other;
  await until(async () => (await detail(sandboxId)).state === 'paused', { timeoutMs: 90_000, what: 'it is paused' });
  assert.equal(await (await hello()).text(), 'awake\n');
  const { state, endAt } = await detail(sandboxId);
  assert.equal(state, 'running');
  assert.ok(Date.parse(endAt) > Date.now() + 10_000);
  assert.equal(await other.kill(), true);
});

test('paused sandboxes outlive the daemon and their time, what ran goes on by itself; a paused one can be killed', async () => {
  const id = sandbox.sandboxId;
  const before = await count();
  const other = await createSandbox(daemon);
  await other.commands.run('echo kept > /tmp/kept');
  await sandbox.setTimeout(TIME_LEFT_MS);
  const over = Date.now() + TIME_LEFT_MS;
  assert.equal(await sandbox.pause(), true);
  const { endAt } = await detail(other.sandboxId);
  assert.equal(await daemon.stop(), 0);
  assert.doesNotMatch(await daemon.log(), /could not be paused/);
  await daemon.launch();
  await until(async () => (await listed('running')).includes(other.sandboxId), {
    ...{ timeoutMs: 60_000, what: 'what ran before the restart runs again' },
  });
  assert.ok(Date.parse((await detail(other.sandboxId)).endAt) >= Date.parse(endAt), 'its time stood still');
  const again = await Sandbox.connect(other.sandboxId, connection());
  assert.equal((await again.commands.run('cat /tmp/kept')).stdout, 'kept\n');
  assert.equal(await again.kill(), true);
  // Its time would have ended it, had it not been paused before; what it gets now is all of what is asked for.
  await sleep(Math.max(0, over + OVERDUE_MS - Date.now()));
  assert.deepEqual(await listed('paused'), [id]);
  const woken = Date.now();
  sandbox = await Sandbox.connect(id, { ...connection(), timeoutMs: 300_000 });
  assert.ok(Date.parse((await detail(id)).endAt) >= woken + 300_000);
  const after = await count();
  assert.deepEqual([after.pid, after.secret, after.whole], [before.pid, before.secret, 'True']);

  assert.equal(await sandbox.pause(), true);
  assert.equal(await Sandbox.kill(id, connection()), true);
  assert.deepEqual(await listed('paused'), []);
  await assert.rejects(Sandbox.connect(id, connection()), { name: 'SandboxNotFoundError' });
  const kept = await readdir(join(daemon.home, 'snapshots', 'by-id'));
  assert.ok(!kept.some((name) => name.startsWith('c')), `checkpoints that are left: ${kept}`);
});

interface Detail {
  readonly state: string;
  readonly endAt: string;
  readonly envdAccessToken: string;
}

async function detail(id: string): Promise<Detail> {
  return (await (await daemon.api('GET', `/sandboxes/${id}`)).json()) as Detail;
}
