import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { run } from '@aenv/platform/process/run.ts';
import { parsePool } from './addresses/range-choice.ts';
import { dnsAddressOf, slotCapacity } from './addresses/range-layout.ts';
import { isForwarding } from './host/forwarding.ts';
import { removeStrays } from './host/instance-removal.ts';
import { instanceNames, tagOf } from './host/names.ts';
import type { Network, NetworkOptions } from './network.ts';
import { deniedRanges } from './slots/denied-ranges.ts';
import { WatermarkPool } from './slots/pool.ts';
import { HostSlotMaker } from './slots/slot-maker.ts';
import { describePoolContract } from './slots/testing/pool-contract.ts';
import { inPrivateHost } from './testing/private-host.ts';
import { RemoteAgent } from './testing/remote-agent.ts';
import { inventory, startNetwork as startInWorld } from './testing/world.ts';

/** What a network makes on the host, and that all of it goes away. */

const CRASHER = fileURLToPath(new URL('./testing/crasher.ts', import.meta.url));
const open = { internet: true };

await inPrivateHost(import.meta.url, () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'aenv-network-lifecycle-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const opened: Network[] = [];
  const startNetwork = async (options?: Partial<NetworkOptions>) => {
    const network = await startInWorld(options);
    opened.push(network);
    return network;
  };
  // One that a failed test left would keep this process alive.
  afterEach(async () => {
    for (const network of opened.splice(0)) await network.close();
  });

  test('close leaves the host as it was, with slots ready, in use and released', async () => {
    const empty = await inventory();
    const network = await startNetwork({ guestLink: 'tap', low: 2, high: 3 });
    const slots = await Promise.all([network.pool.acquire(open), network.pool.acquire({ internet: false })]);
    await network.pool.release(slots[0]);
    assert.notEqual(await inventory(), empty);
    assert.equal(await isForwarding(), true);
    await network.close();
    await network.close();
    assert.equal(await inventory(), empty);
    assert.equal(await isForwarding(), false);
  });

  test('what a killed daemon left is found and removed, even after its rules were flushed', async () => {
    const empty = await inventory();
    const runtimeDir = join(folder, 'flushed');
    await crash(runtimeDir);
    await run(['nft', 'flush', 'ruleset']);
    const removed = await removeStrays({ runtimeDir, clock: systemClock, log: silentLogger });
    assert.deepEqual(removed, { netns: 2, links: 2, addresses: 1, routes: 1, tables: 0 });
    // Who switched forwarding on was written in the rules.
    await run(['sysctl', '-qw', 'net.ipv4.ip_forward=0']);
    assert.equal(await inventory(), empty);
  });

  test('the next daemon of the same folder starts in the place of a killed one', async () => {
    const empty = await inventory();
    const runtimeDir = join(folder, 'crash');
    await crash(runtimeDir);
    const network = await startNetwork({ runtimeDir });
    assert.equal(network.range, '10.200.0.0/20');
    assert.equal((await run(['ip', 'netns', 'list'])).stdout, '');
    await network.close();
    assert.equal(await inventory(), empty);
  });

  test('slots of a killed daemon in which VMs run on are taken over with their addresses, and go when they are released', async () => {
    const empty = await inventory();
    const runtimeDir = join(folder, 'adopted');
    await crash(runtimeDir);
    const [first, second] = [1, 2].map((index) => instanceNames(tagOf(runtimeDir)).netnsPath(index));
    assert.ok(first !== undefined && second !== undefined);
    const rules = async () => (await run(['nsenter', `--net=${first}`, 'nft', 'list', 'ruleset'])).stdout;
    const before = await rules();
    // The second one has no VM any more, the third never was.
    const keep = new Map([first, '/run/netns/aenv-none-3'].map((path) => [path, open] as const));
    const network = await startNetwork({ runtimeDir, keep });
    assert.deepEqual(
      [network.range, network.tag, [...network.kept.keys()]],
      ['10.200.0.0/20', tagOf(runtimeDir), [first]],
    );
    assert.ok(!(await run(['ip', 'netns', 'list'])).stdout.includes(second.slice('/run/netns/'.length)));
    const slot = network.kept.get(first);
    assert.ok(slot);
    assert.deepEqual([slot.index, slot.hostAddress, network.pool.stats().inUse], [1, '10.200.0.6', 1]);
    assert.equal(await rules(), before);
    const other = await network.pool.acquire(open);
    assert.notEqual(other.index, slot.index);
    await network.pool.setPolicy(slot, { internet: false });
    assert.notEqual(await rules(), before);
    await network.pool.release(slot);
    assert.ok(!(await run(['ip', 'netns', 'list'])).stdout.includes(first.slice('/run/netns/'.length)));
    await network.close();
    assert.equal(await isForwarding(), false);
    assert.equal(await inventory(), empty);
  });

  test('two instances that start together take different names and ranges, and the last one cleans up', async () => {
    const empty = await inventory();
    const [a, b] = await Promise.all([startNetwork(), startNetwork()]);
    assert.notEqual(a.tag, b.tag);
    assert.notEqual(a.range, b.range);
    const slots = await Promise.all([a.pool.acquire(open), b.pool.acquire(open)]);
    assert.notEqual(slots[0].hostAddress, slots[1].hostAddress);
    await a.close();
    assert.equal(await isForwarding(), true);
    await b.pool.acquire(open);
    await b.close();
    assert.equal(await inventory(), empty);
  });

  test('removing the strays of one folder touches no other instance', async () => {
    const network = await startNetwork();
    await network.pool.acquire(open);
    const running = await inventory();
    await removeStrays({ runtimeDir: join(folder, 'other'), clock: systemClock, log: silentLogger });
    await removeStrays({ runtimeDir: join(folder, 'other'), tag: network.tag, clock: systemClock, log: silentLogger });
    assert.equal(await inventory(), running);
    await network.close();
  });

  test('a tag that another folder has is not used', async () => {
    const runtimeDir = join(folder, 'collision');
    const holder = await startNetwork({ tag: tagOf(runtimeDir) });
    const network = await startNetwork({ runtimeDir });
    assert.equal(network.tag, tagOf(runtimeDir, 1));
    await assert.rejects(startNetwork({ tag: holder.tag }), { code: 'network_exhausted' });
    await Promise.all([holder.close(), network.close()]);
  });

  test('without a free range the start fails, says why and leaves nothing', async () => {
    await run(['ip', 'route', 'add', 'unreachable', '10.64.0.0/10']);
    const empty = await inventory();
    await assert.rejects(startNetwork({ cidr: '10.66.0.0/16' }), {
      code: 'network_exhausted',
      message: /10\.64\.0\.0\/10/,
    });
    assert.equal(await inventory(), empty);
    await run(['ip', 'route', 'del', 'unreachable', '10.64.0.0/10']);
  });

  test('a tap belongs to the uid and gid of its slot and has the MAC that guests know', async () => {
    const network = await startNetwork({ guestLink: 'tap', uidBase: 310_000 });
    const slot = await network.pool.acquire(open);
    assert.equal(slot.uid, 310_000 + slot.index);
    const second = await startNetwork({ guestLink: 'tap', uidBase: 310_000 });
    assert.notEqual((await second.pool.acquire(open)).uid, slot.uid);
    await second.close();
    const netns = slot.netns.replace('/run/netns/', '');
    const taps = (await run(['ip', '-n', netns, 'tuntap', 'show'])).stdout;
    assert.match(taps, new RegExp(`^${slot.tap}: tap persist user ${slot.uid} group ${slot.uid}$`, 'm'));
    assert.match((await run(['ip', '-n', netns, 'link', 'show', slot.tap])).stdout, /link\/ether 02:fc:00:00:00:01/);
    await network.close();
  });

  test('dialling a slot that is gone fails at once', async () => {
    const network = await startNetwork();
    const slot = await network.pool.acquire(open);
    await network.pool.release(slot);
    const host = new RemoteAgent();
    const outcome = await host.dial(slot.hostAddress, 80);
    assert.equal(outcome.result, 'EHOSTUNREACH');
    await host.close();
    await network.close();
  });

  test('a host firewall that drops by default is reported with its remedy', async () => {
    const network = await startNetwork();
    assert.ok((await network.check()).every((check) => check.ok));
    await run(['nft', 'add', 'table', 'ip', 'filter']);
    const chain = '{ type filter hook forward priority filter ; policy drop ; }';
    await run(['nft', 'add', 'chain', 'ip', 'filter', 'FORWARD', chain]);
    const bad = (await network.check()).filter((check) => !check.ok);
    assert.deepEqual(
      bad.map((check) => check.name),
      ['firewall'],
    );
    for (const command of bad[0]?.remedy?.split('; ') ?? []) {
      await run([
        'nft',
        ...command
          .split(' ')
          .slice(1)
          .map((word) => word.replaceAll("'", '')),
      ] as ['nft', ...string[]]);
    }
    assert.ok((await network.check()).every((check) => check.ok));
    await network.close();
    await run(['nft', 'delete', 'table', 'ip', 'filter']);
  });

  describePoolContract('namespaces of this host', async () => {
    const range = parsePool('10.201.0.0/28');
    const maker = new HostSlotMaker({
      workDir: folder,
      names: instanceNames('abcde'),
      range,
      uidBase: 230_000,
      dnsAddress: dnsAddressOf(range),
      dnsPort: 53,
      deniedCidrs: deniedRanges(range, []),
      guestLink: 'tap',
    });
    const capacity = slotCapacity(range);
    const common = { clock: systemClock, log: silentLogger, metrics: silentMetrics };
    return { pool: new WatermarkPool({ maker, capacity, low: 0, high: 0, ...common }), capacity };
  });
});

/** A daemon that has two slots in use and is killed. */
async function crash(runtimeDir: string): Promise<void> {
  const child = spawn(process.execPath, [CRASHER, runtimeDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  const ready = await Promise.race([once(child.stdout, 'data').then(() => true), closed.then(() => false)]);
  child.kill('SIGKILL');
  await closed;
  assert.ok(ready, 'the daemon that was to be killed had ended by itself');
}
