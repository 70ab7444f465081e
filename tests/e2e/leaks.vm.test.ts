import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { inPrivateHost } from '@aenv/network/testing/private-host.ts';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { difference, inventory } from '../harness/inventory.ts';
import { until } from '../harness/until.ts';

const SOAK = process.env.AENV_SOAK === '1';
const CYCLES = SOAK ? 200 : 30;
const AT_ONCE = 4;
const READY_SLOTS = 3;
/** Connections that clients keep open come and go; a leak of one in each cycle would be many more. */
const KEPT_SOCKETS = 8;

let daemon: TestDaemon;
/** What the host had before the daemon came. */
let host: string[];

const look = () => inventory({ folders: [daemon.home, daemon.runtime], daemonPid: daemon.pid });

/** Slots are refilled behind the scenes and carry fresh numbers, so compare what is there by kind, not by number. */
const withoutNumbers = (lines: readonly string[]) => lines.map((line) => line.replaceAll(/\d+/g, '#')).sort();
const isSocket = (line: string) => line === 'descriptor socket';

async function leavesNothing(before: readonly string[], what: string): Promise<void> {
  let left: string[] = [];
  await until(
    async () => {
      const after = await look();
      left = difference(withoutNumbers(before), withoutNumbers(after)).filter((line) => !isSocket(line.slice(2)));
      const grown = after.filter(isSocket).length - before.filter(isSocket).length;
      if (grown > KEPT_SOCKETS) left.push(`+ ${grown} sockets`);
      return left.length === 0;
    },
    { timeoutMs: 30_000, everyMs: 500, what },
  ).catch(() => assert.deepEqual(left, [], what));
}

function define(): void {
  before(async () => {
    host = await inventory({ folders: [] });
    daemon = await TestDaemon.start({
      env: {
        AENV_NETWORK_SLOTS_LOW: String(READY_SLOTS),
        AENV_NETWORK_SLOTS_HIGH: String(READY_SLOTS),
        AENV_SHUTDOWN_ACTION: 'pause',
      },
    });
  });
  after(async () => {
    await daemon?.[Symbol.asyncDispose]();
  });

  test(`${CYCLES} sandboxes made and deleted, ${AT_ONCE} at a time, leave nothing behind`, async () => {
    {
      // The first one brings what stays for good (a ledger that grew, connections that are kept).
      await using first = await createSandbox(daemon);
      await first.commands.run('true');
    }
    await fullPool();
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
    await fullPool();
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
    // It is paused by the stop; what of it is left are the files that it goes on from.
    const { sandboxId } = await createSandbox(daemon);
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
    for (const line of files) assert.doesNotMatch(line, /\/disks\/.|\.sock|daemon\.json|state\.json/);
    await daemon.launch();
    assert.equal((await daemon.api('DELETE', `/sandboxes/${sandboxId}`)).status, 204);
    await daemon.stop();
    const rest = (await inventory({ folders: [home] })).filter((line) => line.includes(home));
    for (const line of rest) assert.doesNotMatch(line, /\/layers\/.|\/disks\/.|\/by-id\/c/);
    await daemon.launch();
  });
}

/** Waits until the pool of slots is as full as it ever gets. */
async function fullPool(): Promise<void> {
  await until(
    async () => {
      const text = await (await fetch(`${daemon.url}/metrics`)).text();
      return new RegExp(`^aenv_network_slots\\{state="ready"\\} ${READY_SLOTS}$`, 'm').test(text);
    },
    { timeoutMs: 60_000, what: 'the pool is full again' },
  );
}

// Other daemons of this machine come and go; in a private host whatever is left is ours.
await inPrivateHost(import.meta.url, define, SOAK ? 3_600_000 : 580_000);
