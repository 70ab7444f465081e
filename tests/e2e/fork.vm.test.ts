import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sandbox } from 'e2b';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

const SOAK = process.env.AENV_SOAK === '1';
const CHILDREN = SOAK ? 16 : 10;
/** MiB that are on the disk of nobody yet when the source is captured. */
const UNWRITTEN = SOAK ? 300 : 20;
/** No command of the source waits this long, in `ms`: it stands still for its capture, and shares the processors after that. */
const ANSWER_MS = 10_000;

const COUNTER = `
import os, time
secret = os.urandom(32).hex()
n = 0
while True:
    n += 1
    with open('/run/counter.new', 'w') as f:
        f.write(' '.join([str(os.getpid()), secret, str(n)]))
    os.rename('/run/counter.new', '/run/counter')
    time.sleep(0.2)
`;

const root = async (sandbox: Sandbox, command: string) =>
  (await sandbox.commands.run(command, { user: 'root', timeoutMs: 60_000 })).stdout.trim();

async function count(sandbox: Sandbox) {
  const [pid = '', secret = '', n = ''] = (await root(sandbox, 'cat /run/counter')).split(' ');
  return { pid, secret, n: Number(n) };
}

test('children go on from the source, are sandboxes of their own, and nobody sees what another one writes', async () => {
  await using daemon = await TestDaemon.start();
  await using source = await createSandbox(daemon, { envs: { KEPT: 'as it was' } });
  await source.files.write('/root/counter.py', COUNTER, { user: 'root' });
  await source.commands.run('python3 /root/counter.py', { background: true, timeoutMs: 0, user: 'root' });
  await root(source, 'echo before > /root/disk');
  await until(async () => (await count(source)).n > 2, { timeoutMs: 60_000, what: 'the counter counts' });
  const before = await count(source);
  const sum = await root(source, `cd /root && dd if=/dev/urandom of=big bs=1M count=${UNWRITTEN} && sha256sum big`);

  let forking = true;
  const forked = source.fork({ count: CHILDREN, timeoutMs: 1_800_000, requestTimeoutMs: 900_000 }).finally(() => {
    forking = false;
  });
  const waits: number[] = [];
  while (forking) {
    const asked = Date.now();
    await root(source, 'true');
    waits.push(Date.now() - asked);
  }
  const forks = await forked;
  await root(source, 'touch /root/after');
  assert.ok(Math.max(...waits) <= ANSWER_MS, `the source answered after ${waits.join(', ')} ms`);
  const children = forks.filter((fork) => fork instanceof Sandbox);
  assert.equal(children.length, CHILDREN, forks.map(String).join('\n'));
  const all = [source, ...children];
  for (const [at, sandbox] of all.entries()) {
    const now = await count(sandbox);
    assert.deepEqual([now.pid, now.secret], [before.pid, before.secret]);
    assert.ok(now.n >= before.n);
    await until(async () => (await count(sandbox)).n > now.n, { timeoutMs: 30_000, what: `the counter of ${at}` });
    const seen = 'hostname; echo $E2B_SANDBOX_ID; echo $KEPT; cat /root/disk; ls /root/after 2>/dev/null | wc -l';
    const { sandboxId } = sandbox;
    const after = sandbox === source ? 1 : 0;
    assert.equal(await root(sandbox, seen), `${sandboxId}\n${sandboxId}\nas it was\nbefore\n${after}`);
    const disk = 'echo 3 > /proc/sys/vm/drop_caches; cd /root && sha256sum big; dmesg | grep -ci "ext4.*error" || true';
    assert.equal(await root(sandbox, disk), `${sum}\n0`, `the disk of ${at}`);
    const asked = Date.now();
    const clock = Number(await root(sandbox, 'date +%s%3N'));
    assert.ok(clock > asked - 2000 && clock < Date.now() + 2000, `the clock of ${at} is ${clock - asked} ms ahead`);
    await root(sandbox, `echo written by ${at} > /root/disk`);
  }
  for (const [at, sandbox] of all.entries()) {
    assert.equal(await root(sandbox, 'cat /root/disk'), `written by ${at}`);
  }
  const uuids = await Promise.all(all.map((sandbox) => root(sandbox, 'cat /proc/sys/kernel/random/uuid')));
  assert.equal(new Set(uuids).size, CHILDREN + 1);
  const tokens = await Promise.all(
    all.map(async ({ sandboxId }) => {
      const detail = await daemon.api('GET', `/sandboxes/${sandboxId}`);
      return ((await detail.json()) as { envdAccessToken: string }).envdAccessToken;
    }),
  );
  assert.equal(new Set(tokens).size, CHILDREN + 1);

  // A child stands on its own: it outlives the source, and can be paused and go on.
  const [child] = children;
  assert.ok(child);
  await source.kill();
  assert.equal(await child.pause(), true);
  await child.connect({ timeoutMs: 300_000 });
  assert.equal((await count(child)).secret, before.secret);
  assert.equal(await root(child, 'cat /root/disk'), 'written by 1');
});
