import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Sandbox } from 'e2b';
import { aenv } from '../harness/cli.ts';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

/**
 * Counts, holds a secret that it changes when it is told to, keeps the last number in a file without a name and in ever
 * other pages of its memory, and talks to itself over a loopback connection. What it tells of itself: pid, number, hash of
 * the secret, whether all of that is whole.
 */
const KEEPER = `
import hashlib, os, socket, time
server = socket.create_server(('127.0.0.1', 0))
out = socket.create_connection(server.getsockname())
back, _ = server.accept()
secret = os.urandom(1 << 20)
held = open('/root/held', 'w+')
os.unlink('/root/held')
held.write('0')
pages = bytearray(1 << 24)
n = 0
whole = True
while True:
    held.seek(0)
    whole = whole and int(held.read()) == n and pages[n * 4096 % len(pages)] == n % 256
    n += 1
    held.seek(0)
    held.write('%08d' % n)
    held.flush()
    pages[n * 4096 % len(pages)] = n % 256
    if os.path.exists('/run/change'):
        secret = os.urandom(1 << 20)
        os.unlink('/run/change')
    out.sendall(b'%08d' % n)
    echo = int(back.recv(8))
    whole = whole and echo == n
    with open('/run/keeper.new', 'w') as f:
        f.write(' '.join([str(os.getpid()), str(n), hashlib.sha256(secret).hexdigest(), str(whole)]))
    os.rename('/run/keeper.new', '/run/keeper')
    time.sleep(0.2)
`;

let daemon: TestDaemon;
let source: Sandbox;
before(async () => {
  daemon = await TestDaemon.start();
  source = await createSandbox(daemon, { envs: { KEPT: 'as it was' } });
  await source.files.write('/root/keeper.py', KEEPER, { user: 'root' });
  await source.commands.run('python3 /root/keeper.py', { background: true, timeoutMs: 0, user: 'root' });
  await until(async () => (await state(source)).n > 2, { timeoutMs: 60_000, what: 'the keeper counts' });
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

const connection = () => ({
  ...{ apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey, requestTimeoutMs: 180_000 },
});

async function root(sandbox: Sandbox, command: string): Promise<string> {
  return (await sandbox.commands.run(command, { user: 'root', timeoutMs: 120_000 })).stdout.trim();
}

/** A change of the secret shows with the next number. */
async function state(sandbox: Sandbox) {
  const [pid = '', n = '', secret = '', whole = ''] = (await root(sandbox, 'cat /run/keeper')).split(' ');
  return { pid, n: Number(n), secret, whole };
}

async function change(sandbox: Sandbox, text: string): Promise<string> {
  const { secret } = await state(sandbox);
  await root(sandbox, `touch /run/change && echo ${text} > /root/disk`);
  await until(async () => (await state(sandbox)).secret !== secret, { timeoutMs: 30_000, what: 'the secret changes' });
  return (await state(sandbox)).secret;
}

const listed = async (query: Parameters<typeof Sandbox.listSnapshots>[0] = {}) =>
  (await Sandbox.listSnapshots({ ...connection(), ...query }).nextItems()).map(({ snapshotId }) => snapshotId);

test('sandboxes of a snapshot go on from it, diverge, and are sources themselves, three deep', async () => {
  // Not synced: what the snapshot has of it is in memory.
  const sums = await root(
    source,
    'echo source > /root/disk; cd /root && head -c 20000000 /dev/urandom > big && sha256sum big',
  );
  const before = await state(source);
  const named = await source.createSnapshot({ name: 'ready:v1' });
  assert.deepEqual([named.snapshotId, named.names], ['default/ready:v1', ['default/ready:v1']]);
  await root(source, 'touch /root/after');

  const children = [];
  for (let at = 0; at < 2; at++) children.push(await Sandbox.create(named.snapshotId, connection()));
  const [first, second] = children;
  assert.ok(first && second);
  for (const child of children) {
    const now = await state(child);
    assert.deepEqual([now.pid, now.secret, now.whole], [before.pid, before.secret, 'True']);
    assert.ok(now.n >= before.n);
    const seen = 'hostname; echo $E2B_SANDBOX_ID; echo $KEPT; ls /root/after 2>/dev/null | wc -l';
    const [hostname, id, kept, found] = (await root(child, seen)).split('\n');
    assert.deepEqual([hostname, id, kept, found], [child.sandboxId, child.sandboxId, 'as it was', '0']);
    assert.equal(await root(child, 'echo 3 > /proc/sys/vm/drop_caches; cd /root && sha256sum big'), sums);
    assert.equal(await root(child, 'dmesg | grep -ci "ext4.*error" || true'), '0');
    const asked = Date.now();
    const clock = Number(await root(child, 'date +%s%3N'));
    assert.ok(clock > asked - 2000 && clock < Date.now() + 2000, `its clock is ${clock - asked} ms ahead`);
  }
  const uuid = (sandbox: Sandbox) => root(sandbox, 'cat /proc/sys/kernel/random/uuid');
  assert.equal(new Set(await Promise.all([source, ...children].map(uuid))).size, 3);

  const secrets = [before.secret, await change(first, 'first'), await change(second, 'second')];
  assert.equal(new Set(secrets).size, 3);
  for (const [at, sandbox] of [source, first, second].entries()) {
    assert.equal((await state(sandbox)).secret, secrets[at]);
    assert.equal(await root(sandbox, 'cat /root/disk'), ['source', 'first', 'second'][at]);
  }
  await second.kill();

  // The name moves to what a child has become; the one before is known by its id.
  const moved = await first.createSnapshot({ name: 'ready:v1' });
  assert.equal(moved.snapshotId, named.snapshotId);
  const [newest, unnamed] = await listed();
  assert.equal(newest, 'default/ready:v1');
  assert.match(unnamed ?? '', /^[a-z0-9]{20}:default$/);
  assert.deepEqual(await listed({ sandboxId: first.sandboxId }), ['default/ready:v1']);
  assert.deepEqual(await listed({ name: 'nothing' }), []);
  const third = await Sandbox.create('ready:v1', connection());
  assert.deepEqual([(await state(third)).pid, (await state(third)).secret], [before.pid, secrets[1]]);
  assert.equal(await root(third, 'cat /root/disk'), 'first');
  await root(third, 'echo third > /root/disk');
  const deepest = await third.createSnapshot();
  await third.kill();
  await assert.rejects(Sandbox.deleteSnapshot(unnamed ?? '', connection()), new RegExp(first.sandboxId));
  await first.kill();
  assert.equal(await Sandbox.deleteSnapshot(unnamed ?? '', connection()), true);
  assert.equal(await Sandbox.deleteSnapshot(unnamed ?? '', connection()), false);
  assert.equal(await Sandbox.deleteSnapshot('default/ready:v1', connection()), true);

  // What is left needs nothing of what was removed, also under the next daemon, which looks through all there is.
  await source.kill();
  await daemon.stop();
  await daemon.launch();
  assert.deepEqual(await listed(), [deepest.snapshotId]);
  const verified = await aenv(daemon, ['snapshot', 'verify', deepest.snapshotId]);
  assert.equal(verified.code, 0, verified.stderr);
  source = await Sandbox.create(deepest.snapshotId, { ...connection(), timeoutMs: 600_000 });
  assert.deepEqual([(await state(source)).pid, (await state(source)).secret], [before.pid, secrets[1]]);
  assert.equal(await root(source, 'cat /root/disk'), 'third');
  assert.equal(await root(source, 'cd /root && sha256sum big'), sums);
});

test('ten pauses lose nothing of disk, processes, connections and a terminal, and what is kept stays one step deep', async () => {
  let typed = '';
  const decoder = new TextDecoder();
  const terminal = await source.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: () => {} });
  const kept = await state(source);
  for (let round = 1; round <= 10; round++) {
    await root(source, `cd /root && head -c 200000${round} /dev/urandom > f${round} && sha256sum f* > sums`);
    assert.equal(await source.pause(), true);
    const manifests = (await readdir(join(daemon.home, 'snapshots', 'by-id'))).filter((name) => name.startsWith('c'));
    for (const name of manifests) {
      const text = await readFile(join(daemon.home, 'snapshots', 'by-id', name, 'manifest.json'), 'utf8');
      const { kind, memory } = JSON.parse(text).snapshot;
      if (kind === 'pause') assert.ok((memory.delta?.dataBytes ?? 0) <= 512 * 2 ** 20, `delta of round ${round}`);
    }
    assert.ok(manifests.length <= 2, `checkpoints are left: ${manifests}`);
    await source.connect({ ...connection(), timeoutMs: 600_000 });
    const now = await state(source);
    assert.deepEqual([now.pid, now.secret, now.whole], [kept.pid, kept.secret, 'True'], `round ${round}`);
    await until(async () => (await state(source)).n > now.n, { timeoutMs: 30_000, what: 'the keeper goes on' });
    await root(source, 'cd /root && sha256sum --check --quiet sums');
  }
  const again = await source.pty.connect(terminal.pid, {
    timeoutMs: 0,
    onData: (data) => {
      typed += decoder.decode(data, { stream: true });
    },
  });
  await source.pty.sendInput(terminal.pid, Buffer.from('echo still $((40 + 2))\n'));
  await until(() => typed.includes('still 42'), { timeoutMs: 30_000, what: 'the terminal answers' });
  await source.pty.kill(terminal.pid);
  await again.wait().catch(() => {});
});

test('a pause without memory keeps the disk alone: the next start boots, as the same sandbox', async () => {
  await source.kill();
  const sandbox = await createSandbox(daemon, { envs: { KEPT: 'as it was' } });
  const token = async () => {
    const detail = await daemon.api('GET', `/sandboxes/${sandbox.sandboxId}`);
    return ((await detail.json()) as { envdAccessToken: string }).envdAccessToken;
  };
  const before = { token: await token(), boot: await root(sandbox, 'cat /proc/sys/kernel/random/boot_id') };
  await sandbox.commands.run('sleep 5000', { background: true, timeoutMs: 0 });
  // Not synced by anyone in the guest.
  const sum = await root(sandbox, 'cd /root && head -c 10000000 /dev/urandom > big && sha256sum big');
  assert.equal(await sandbox.pause({ keepMemory: false }), true);
  assert.equal(await sandbox.isRunning(), false);
  assert.equal((await sandbox.getInfo()).state, 'paused');
  const snapshots = await readdir(join(daemon.home, 'snapshots', 'by-id'));
  await daemon.stop();
  await daemon.launch();
  assert.deepEqual(await readdir(join(daemon.home, 'snapshots', 'by-id')), snapshots);

  const again = await Sandbox.connect(sandbox.sandboxId, { ...connection(), timeoutMs: 600_000 });
  assert.equal(await token(), before.token);
  assert.equal(await root(again, 'cd /root && sha256sum big'), sum);
  assert.equal(await root(again, 'hostname; echo $KEPT'), `${sandbox.sandboxId}\nas it was`);
  assert.notEqual(await root(again, 'cat /proc/sys/kernel/random/boot_id'), before.boot);
  assert.equal(await root(again, 'pgrep -c sleep || true'), '0');
  await again.kill();
});
