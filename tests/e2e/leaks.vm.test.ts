import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { difference, inventory } from '../harness/inventory.ts';
import { until } from '../harness/until.ts';

const CYCLES = process.env.AENV_SOAK === '1' ? 200 : 30;
const AT_ONCE = 4;

let daemon: TestDaemon;
/** What the host had before the daemon came. */
let host: string[];
before(async () => {
  host = await inventory({ folders: [] });
  daemon = await TestDaemon.start();
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

const look = () => inventory({ folders: [daemon.home, daemon.runtime], daemonPid: daemon.pid });

/** Slots are refilled behind the scenes and carry fresh numbers, so compare what is there by kind, not by number. */
const withoutNumbers = (lines: readonly string[]) => lines.map((line) => line.replaceAll(/\d+/g, '#')).sort();

async function leavesNothing(before: readonly string[], what: string): Promise<void> {
  let left: string[] = [];
  await until(
    async () => {
      left = difference(withoutNumbers(before), withoutNumbers(await look()));
      return left.length === 0;
    },
    { timeoutMs: 30_000, everyMs: 500, what },
  ).catch(() => assert.deepEqual(left, [], what));
}

test(`${CYCLES} sandboxes made and deleted, ${AT_ONCE} at a time, leave nothing behind`, async () => {
  {
    // The first one brings what stays for good (a ledger that grew, connections that are kept).
    await using first = await createSandbox(daemon);
    await first.commands.run('true');
  }
  await until(async () => (await pool()) === 'full', { timeoutMs: 30_000, what: 'the pool is full again' });
  const before = await look();
  let next = 0;
  const worker = async () => {
    while (next < CYCLES) {
      next++;
      await using sandbox = await createSandbox(daemon);
      const { stdout } = await sandbox.commands.run('echo alive');
      assert.equal(stdout, 'alive\n');
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await leavesNothing(before, 'the same inventory as before');
});

test('a crash with three sandboxes running leaves nothing after the next start, and says what was lost', async () => {
  const before = await look();
  const ids = (await Promise.all([1, 2, 3].map(() => createSandbox(daemon)))).map((sandbox) => sandbox.sandboxId);
  await daemon.crash();
  await daemon.launch();
  await until(async () => (await pool()) === 'full', { timeoutMs: 30_000, what: 'the pool is full again' });
  await leavesNothing(before, 'the same inventory as before the crash');
  for (const id of ids) {
    const answer = await daemon.api('GET', `/sandboxes/${id}`);
    assert.equal(answer.status, 404);
    const body = (await answer.json()) as { code: number; message: string };
    assert.equal(body.code, 404);
    assert.match(body.message, /lost/);
    assert.match(JSON.stringify(body), /daemon_crashed/);
  }
  const list = (await (await daemon.api('GET', '/v2/sandboxes')).json()) as unknown[];
  assert.deepEqual(list, []);
});

test('an orderly stop gives back everything that the host lent, and keeps no disk, socket or state file', async () => {
  await createSandbox(daemon);
  const { home, runtime } = daemon;
  assert.equal(await daemon.stop(), 0);
  let left: string[] = [];
  await until(
    async () => {
      left = difference(withoutNumbers(host), withoutNumbers(await inventory({ folders: [] })));
      return left.length === 0;
    },
    { timeoutMs: 10_000, what: 'the host is as before the daemon came' },
  ).catch(() => assert.deepEqual(left, []));
  const files = (await inventory({ folders: [home, runtime] })).filter(
    (line) => line.includes(home) || line.includes(runtime),
  );
  for (const line of files) assert.doesNotMatch(line, /qcow2|\.sock|daemon\.json/);
  await daemon.launch();
});

async function pool(): Promise<'full' | 'filling'> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  const ready = Number(/^aenv_network_slots\{state="ready"\} (\d+)/m.exec(text)?.[1] ?? 'NaN');
  assert.ok(Number.isFinite(ready), 'the pool reports its size');
  const before = previous;
  previous = ready;
  return before === ready && ready > 0 ? 'full' : 'filling';
}
let previous = -1;
