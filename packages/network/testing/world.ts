import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import { run } from '@aenv/platform/process/run.ts';
import { ipBatch } from '../host/commands.ts';
import { NETNS_DIR } from '../host/names.ts';
import { createNetwork, type Network, type NetworkOptions } from '../network.ts';
import { RemoteAgent } from './remote-agent.ts';

/** A machine outside, on a network of the host's: the internet, as far as these tests go. */
export const OUTSIDE = {
  netns: 'outside',
  address: '198.51.100.2',
  /** the host's address on that network */
  hostAddress: '198.51.100.1',
  address6: '2001:db8::2',
  port: 8080,
  /** further addresses of that machine, to which the host has routes: what must be denied would be reachable */
  denied: ['10.99.0.1', '100.64.9.9', '169.254.169.254', '172.20.0.1', '192.168.77.1', '240.0.0.1'],
} as const;

/** Another address of the host, such as a cloud machine's public one. */
export const HOST_PUBLIC_ADDRESS = '203.0.113.7';

export async function startOutside(): Promise<RemoteAgent> {
  await ipBatch([
    `netns add ${OUTSIDE.netns}`,
    `link add uplink type veth peer name eth0 netns ${OUTSIDE.netns}`,
    `addr add ${OUTSIDE.hostAddress}/24 dev uplink`,
    'addr add 2001:db8::1/64 dev uplink nodad',
    'link set uplink up',
    `addr add ${HOST_PUBLIC_ADDRESS}/32 dev lo`,
    `netns exec ${OUTSIDE.netns} ip link set lo up`,
    `netns exec ${OUTSIDE.netns} ip addr add ${OUTSIDE.address}/24 dev eth0`,
    `netns exec ${OUTSIDE.netns} ip addr add ${OUTSIDE.address6}/64 dev eth0 nodad`,
    `netns exec ${OUTSIDE.netns} ip link set eth0 up`,
    ...OUTSIDE.denied.flatMap((address) => [
      `netns exec ${OUTSIDE.netns} ip addr add ${address}/32 dev lo`,
      `route add ${address}/32 via ${OUTSIDE.address}`,
    ]),
  ]);
  const agent = new RemoteAgent(join(NETNS_DIR, OUTSIDE.netns));
  await agent.serve(OUTSIDE.port);
  await agent.serveNames(OUTSIDE.address);
  return agent;
}

/** A network whose names are resolved by the machine outside, and whose guests are processes. */
export async function startNetwork(options: Partial<NetworkOptions> = {}): Promise<Network> {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-network-world-'));
  const resolvConf = join(folder, 'resolv.conf');
  await writeFile(resolvConf, `nameserver ${OUTSIDE.address}\n`);
  const network = await createNetwork({
    runtimeDir: folder,
    resolvConf,
    guestLink: 'veth',
    low: 0,
    high: 0,
    clock: systemClock,
    log: silentLogger,
    metrics: silentMetrics,
    ...options,
  });
  return {
    ...network,
    close: async () => {
      await network.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Puts a process in the VM's place: a namespace with the guest's address, MAC and default route. */
export async function startGuest(slot: NetworkSlot, name: string): Promise<RemoteAgent> {
  const inGuest = (command: string) => `netns exec ${name} ip ${command}`;
  await ipBatch([
    `netns add ${name}`,
    `netns exec ${slot.netns.slice(NETNS_DIR.length + 1)} ip link set guest0 netns ${name} name eth0`,
    inGuest('link set lo up'),
    inGuest(`link set eth0 address ${GUEST_LINK.mac}`),
    inGuest(`addr add ${GUEST_LINK.address}/${GUEST_LINK.prefixLength} dev eth0`),
    inGuest('link set eth0 up'),
    inGuest(`route add default via ${GUEST_LINK.gateway}`),
  ]);
  return new RemoteAgent(join(NETNS_DIR, name));
}

export async function removeNetns(...names: readonly string[]): Promise<void> {
  await run(['ip', '-force', '-batch', '-'], {
    input: names.map((name) => `netns del ${name}\n`).join(''),
    okCodes: [0, 1],
  });
}

/** Everything of the host's network that an instance could leave behind, as text to compare. */
export async function inventory(): Promise<string> {
  const commands: readonly [string, ...string[]][] = [
    ['ip', '-o', 'link'],
    ['ip', '-o', 'addr'],
    ['ip', 'route', 'show', 'table', 'all'],
    ['ip', 'rule'],
    ['ip', 'netns'],
    ['nft', 'list', 'ruleset'],
    ['sysctl', 'net.ipv4.ip_forward'],
  ];
  const parts: string[] = [];
  for (const command of commands) parts.push(`$ ${command.join(' ')}`, (await run(command)).stdout);
  return parts.join('\n').replaceAll(/valid_lft \S+/g, '');
}
