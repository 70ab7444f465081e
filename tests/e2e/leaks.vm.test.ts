import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { inPrivateHost } from '@aenv/network/testing/private-host.ts';
import { openLedger } from '@aenv/node/store/ledger.ts';
import { killAndWait } from '@aenv/platform/process/identity.ts';
import { Sandbox } from 'e2b';
import { createSandbox } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { difference, inventory } from '../harness/inventory.ts';
import { until } from '../harness/until.ts';

const SOAK = process.env.AENV_SOAK === '1';
const CYCLES = SOAK ? 120 : 16;
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
        const { stdout } = await sandbox.commands.run('hostname && echo $E2B_SANDBOX_ID');
        assert.equal(stdout, `${sandbox.sandboxId}\n${sandbox.sandboxId}\n`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    await leavesNothing(before, 'the same inventory as before');
  });

  test('sandboxes outlive a crash with all that they hold; one whose VM is gone is lost; nothing is left when they end', async () => {
    const before = await look();
    const sandboxes = await Promise.all([1, 2, 3].map(() => createSandbox(daemon)));
    const ids = sandboxes.map((sandbox) => sandbox.sandboxId);
    const [kept = '', other = '', lost = ''] = ids;
    const tell = 'echo $$ > /run/pid; while true; do sleep 1; done';
    await sandboxes[0]?.commands.run(tell, { background: true, timeoutMs: 0, user: 'root' });
    const bootId = 'cat /proc/sys/kernel/random/boot_id';
    const boot = (await sandboxes[1]?.commands.run(bootId))?.stdout;
    await daemon.crash();
    await killVmOf(lost);
    await daemon.launch();
    const list = (await (await daemon.api('GET', '/v2/sandboxes')).json()) as { sandboxID: string; state: string }[];
    assert.deepEqual(
      list.map(({ sandboxID, state }) => `${sandboxID} ${state}`).sort(),
      [`${kept} running`, `${other} running`].sort(),
    );
    const connection = { apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey };
    const first = await Sandbox.connect(kept, connection);
    const second = await Sandbox.connect(other, connection);
    const alive = await first.commands.run('kill -0 $(cat /run/pid) && echo alive', { user: 'root' });
    assert.equal(alive.stdout, 'alive\n');
    assert.equal((await second.commands.run(bootId)).stdout, boot);
    // The disk is there, and names are answered through the same slot.
    await second.commands.run('head -c 5000000 /dev/urandom > /root/file && sync', { user: 'root' });
    assert.equal(await second.pause(), true);
    await second.connect();
    assert.equal((await second.commands.run('stat -c %s /root/file', { user: 'root' })).stdout, '5000000\n');

    const answer = await daemon.api('GET', `/sandboxes/${lost}`);
    assert.equal(answer.status, 404);
    assert.match(JSON.stringify(await answer.json()), /lost.*daemon_crashed|daemon_crashed.*lost/);
    assert.deepEqual([await first.kill(), await second.kill()], [true, true]);
    await fullPool();
    await leavesNothing(before, 'the same inventory as before the crash');
  });

  test('with `recovery.action = "remove"` nothing of a crash is left after the next start, and it says what was lost', async () => {
    const before = await look();
    const { sandboxId } = await createSandbox(daemon);
    await daemon.crash();
    await daemon.launch({ AENV_RECOVERY_ACTION: 'remove' });
    await fullPool();
    await leavesNothing(before, 'the same inventory as before the crash');
    const answer = await daemon.api('GET', `/sandboxes/${sandboxId}`);
    assert.match(JSON.stringify(await answer.json()), /daemon_crashed/);
    assert.deepEqual(await (await daemon.api('GET', '/v2/sandboxes')).json(), []);
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
      { timeoutMs: 60_000, what: 'the host is as before the daemon came' },
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

/** Ends the VM of a sandbox while no daemon looks. */
async function killVmOf(sandboxId: string): Promise<void> {
  const ledger = openLedger(daemon.home);
  const vm = ledger.sandboxes.get(sandboxId)?.vm;
  ledger.close();
  assert.ok(vm !== undefined && (await killAndWait(vm.process)));
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
