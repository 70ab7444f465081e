import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';
import { frame } from './dns/frames.ts';
import { RCODE, readMessage, TYPE, writeQuery } from './dns/message.ts';
import type { Network } from './network.ts';
import type { Outcome } from './testing/agent-protocol.ts';
import { inPrivateHost } from './testing/private-host.ts';
import { RemoteAgent } from './testing/remote-agent.ts';
import { HOST_PUBLIC_ADDRESS, OUTSIDE, removeNetns, startGuest, startNetwork, startOutside } from './testing/world.ts';

/** What a guest reaches and what it does not, with processes in the place of VMs. */

const API_PORT = 18_000;
const GUEST_PORT = 3_000;
const QUERY = writeQuery({
  id: 7,
  question: { name: { labels: ['example', 'com'] }, type: TYPE.A, class: 1 },
  recursionDesired: true,
  authenticData: false,
  checkingDisabled: false,
  edns: undefined,
});

function assertRefused(outcome: Outcome, what: string): void {
  assert.notEqual(outcome.result, 'answered', `${what} was reached`);
  assert.notEqual(outcome.result, 'timeout', `${what}: the refusal did not come`);
  assert.ok(outcome.ms < 1_000, `${what}: the refusal took ${outcome.ms} ms`);
}

await inPrivateHost(import.meta.url, () => {
  const errors: string[] = [];
  let outside: RemoteAgent;
  let network: Network;
  let slots: readonly [NetworkSlot, NetworkSlot];
  let guest: RemoteAgent;
  let other: RemoteAgent;
  let host: RemoteAgent;
  let api: Server;

  before(async () => {
    outside = await startOutside();
    const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
    network = await startNetwork({ log });
    slots = await Promise.all([network.pool.acquire({ internet: true }), network.pool.acquire({ internet: true })]);
    [guest, other] = await Promise.all([startGuest(slots[0], 'guest-a'), startGuest(slots[1], 'guest-b')]);
    await Promise.all([guest.serve(GUEST_PORT), other.serve(GUEST_PORT)]);
    host = new RemoteAgent();
    api = createServer((socket) => {
      socket.on('error', () => {});
      socket.end('api\n');
    });
    await new Promise<void>((resolve) => api.listen(API_PORT, '0.0.0.0', resolve));
  });

  after(async () => {
    api.close();
    await Promise.all([guest, other, outside, host].map((agent) => agent.close()));
    await network.close();
    await removeNetns('guest-a', 'guest-b', OUTSIDE.netns);
  });

  test('the host reaches each guest by its slot address, and the guest sees the host as the client', async () => {
    for (const slot of slots) {
      const outcome = await host.dial(slot.hostAddress, GUEST_PORT);
      assert.equal(outcome.result, 'answered');
      assert.ok(isHostEnd(outcome.data), outcome.data);
    }
  });

  test('a guest reaches the outside over TCP and UDP, with the address of the host', async () => {
    const tcp = await guest.dial(OUTSIDE.address, OUTSIDE.port);
    assert.deepEqual([tcp.result, tcp.data], ['answered', OUTSIDE.hostAddress]);
    const udp = await guest.datagram(OUTSIDE.address, OUTSIDE.port, Buffer.from('x'));
    assert.deepEqual([udp.result, Buffer.from(udp.data, 'hex').toString()], ['answered', OUTSIDE.hostAddress]);
  });

  test('no address of the host answers a guest, the public one of it neither', async () => {
    const addresses = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter((info) => info.family === 'IPv4' && !info.address.startsWith('127.'))
      .map((info) => info.address);
    for (const address of [HOST_PUBLIC_ADDRESS, OUTSIDE.hostAddress, network.dnsAddress]) {
      assert.ok(addresses.includes(address), address);
    }
    const control = await outside.dial(OUTSIDE.hostAddress, API_PORT);
    assert.deepEqual([control.result, control.data], ['answered', 'api']);
    await Promise.all(
      [...addresses, GUEST_LINK.gateway].map(async (address) => {
        assertRefused(await guest.dial(address, API_PORT), `${address} over TCP`);
        assertRefused(await guest.datagram(address, API_PORT, QUERY), `${address} over UDP`);
      }),
    );
  });

  test('a guest does not reach another one', async () => {
    assertRefused(await guest.dial(slots[1].hostAddress, GUEST_PORT), 'the other slot');
    assertRefused(await other.datagram(slots[0].hostAddress, GUEST_PORT, QUERY), 'the other slot');
  });

  test('the outside does not reach a guest, nor the forwarder', async () => {
    await run(['ip', '-n', OUTSIDE.netns, 'route', 'add', network.range, 'via', OUTSIDE.hostAddress]);
    const outcomes = await Promise.all([
      outside.dial(slots[0].hostAddress, GUEST_PORT),
      outside.datagram(network.dnsAddress, 53, QUERY),
    ]);
    for (const outcome of outcomes) assert.notEqual(outcome.result, 'answered');
  });

  test('metadata, private and special addresses are refused, though the host has routes to them', async () => {
    for (const address of OUTSIDE.denied) {
      if (!address.startsWith('240.'))
        assert.equal((await host.dial(address, OUTSIDE.port)).result, 'answered', address);
      assertRefused(await guest.dial(address, OUTSIDE.port), address);
      assertRefused(await guest.datagram(address, OUTSIDE.port, QUERY), address);
    }
  });

  test('refusals are not subject to a rate limit', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, () => guest.datagram('192.168.77.1', OUTSIDE.port, QUERY)),
    );
    for (const outcome of outcomes) assertRefused(outcome, 'a private address');
  });

  test('names are resolved by way of the gateway, over UDP and TCP', async () => {
    const udp = await guest.datagram(GUEST_LINK.gateway, 53, QUERY);
    const answer = readMessage(Buffer.from(udp.data, 'hex'));
    assert.deepEqual([...(answer?.records[0]?.data ?? [])], [192, 0, 2, 55]);
    const tcp = await guest.dial(GUEST_LINK.gateway, 53, frame(QUERY));
    assert.deepEqual(
      [...(readMessage(Buffer.from(tcp.data, 'hex').subarray(2))?.records[0]?.data ?? [])],
      [192, 0, 2, 55],
    );
  });

  test('a guest cannot use another source address', async () => {
    await run(['ip', '-n', 'guest-b', 'addr', 'add', '10.20.30.40/32', 'dev', 'eth0']);
    await run(['ip', '-n', 'guest-b', 'route', 'replace', 'default', 'via', GUEST_LINK.gateway, 'src', '10.20.30.40']);
    const seen = await outside.seen();
    assert.equal((await other.datagram(OUTSIDE.address, OUTSIDE.port, QUERY)).result, 'timeout');
    assert.equal(await outside.seen(), seen);
    await run(['ip', '-n', 'guest-b', 'route', 'replace', 'default', 'via', GUEST_LINK.gateway]);
    await run(['ip', '-n', 'guest-b', 'addr', 'del', '10.20.30.40/32', 'dev', 'eth0']);
    assert.equal((await other.datagram(OUTSIDE.address, OUTSIDE.port, QUERY)).result, 'answered');
    assert.equal(await outside.seen(), seen + 1);
  });

  test('IPv6 leads nowhere', async () => {
    const netns = slots[0].netns.replace('/run/netns/', '');
    assert.equal((await run(['ip', '-n', netns, '-6', 'addr'])).stdout, '');
    await run(['ip', '-n', 'guest-a', 'addr', 'add', '2001:db8:1::21/64', 'dev', 'eth0', 'nodad']);
    await run(['ip', '-n', 'guest-a', 'neigh', 'add', '2001:db8:1::1', 'lladdr', GUEST_LINK.tapMac, 'dev', 'eth0']);
    await run(['ip', '-n', 'guest-a', '-6', 'route', 'add', 'default', 'via', '2001:db8:1::1']);
    const outcomes = await Promise.all([
      guest.dial(OUTSIDE.address6, OUTSIDE.port),
      guest.dial('2001:db8::1', API_PORT),
    ]);
    for (const outcome of outcomes) assert.notEqual(outcome.result, 'answered');
    await run(['ip', '-n', 'guest-a', '-6', 'addr', 'flush', 'dev', 'eth0']);
  });

  test('without internet everything is refused at once, names are answered at once, and the host still gets in', async () => {
    await network.pool.setPolicy(slots[1], { internet: false });
    assertRefused(await other.dial(OUTSIDE.address, OUTSIDE.port), 'the outside over TCP');
    assertRefused(await other.datagram(OUTSIDE.address, OUTSIDE.port, QUERY), 'the outside over UDP');
    assertRefused(await other.datagram(OUTSIDE.address, 53, QUERY), 'a resolver outside');
    const name = await other.datagram(GUEST_LINK.gateway, 53, QUERY);
    assert.equal(readMessage(Buffer.from(name.data, 'hex'))?.rcode, RCODE.nxDomain);
    assert.ok(name.ms < 1_000);
    assert.equal((await host.dial(slots[1].hostAddress, GUEST_PORT)).result, 'answered');
    await network.pool.setPolicy(slots[1], { internet: true });
    assert.equal((await other.dial(OUTSIDE.address, OUTSIDE.port)).result, 'answered');
  });

  test('a slot that is acquired without internet has none from the start', async () => {
    const slot = await network.pool.acquire({ internet: false });
    const closed = await startGuest(slot, 'guest-c');
    assertRefused(await closed.dial(OUTSIDE.address, OUTSIDE.port), 'the outside');
    await closed.close();
    await network.pool.release(slot);
    await removeNetns('guest-c');
  });

  test("a change of policy cuts open flows, also those on which only the other side talks, but not the host's own", {
    timeout: 20_000,
  }, async () => {
    await guest.open('talking', OUTSIDE.address, OUTSIDE.port, 'talk');
    await guest.open('listening', OUTSIDE.address, OUTSIDE.port, 'listen');
    await guest.open('datagrams', OUTSIDE.address, OUTSIDE.port, 'udp');
    await host.open('from-host', slots[0].hostAddress, GUEST_PORT, 'talk');
    for (const name of ['talking', 'listening', 'datagrams']) {
      while ((await guest.flow(name)).received === 0) await delay(20);
    }

    await network.pool.setPolicy(slots[0], { internet: false });
    while ((await guest.flow('talking')).state === 'open') await delay(20);
    assert.equal((await guest.flow('talking')).state, 'ECONNRESET');
    const earlier = new Map<string, number>();
    for (const name of ['listening', 'datagrams']) earlier.set(name, (await guest.flow(name)).received);
    const fromHost = await host.flow('from-host');
    // As long as nothing comes from outside, the other side goes on talking.
    await delay(400);
    while ((await host.flow('from-host')).received === fromHost.received) await delay(20);
    for (const [name, received] of earlier) assert.equal((await guest.flow(name)).received, received, name);

    await network.pool.setPolicy(slots[0], { internet: true });
    assert.equal((await guest.dial(OUTSIDE.address, OUTSIDE.port)).result, 'answered');
  });

  test('rules that another program flushes come back', { timeout: 20_000 }, async () => {
    await run(['nft', 'flush', 'ruleset']);
    while ((await network.check()).some((check) => !check.ok) || errors.length === 0) await delay(200);
    assert.match(errors[0] ?? '', /flushed/);
    assertRefused(await guest.dial(HOST_PUBLIC_ADDRESS, API_PORT), 'the public address of the host');
    assert.equal((await guest.dial(OUTSIDE.address, OUTSIDE.port)).result, 'answered');
  });

  /** The host's end of a slot's /30. */
  function isHostEnd(address: string): boolean {
    return slots.some((slot) => {
      const [a, b, c, d] = slot.hostAddress.split('.').map(Number);
      return address === `${a}.${b}.${c}.${(d ?? 0) - 1}`;
    });
  }
});
