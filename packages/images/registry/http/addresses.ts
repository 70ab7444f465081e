import { BlockList, isIP } from 'node:net';

/**
 * How far inside an address is. What is further inside than the registry itself is never asked on its behalf: a registry
 * must not lead the host to services that only the host can reach.
 */
export type Depth = 'public' | 'private' | 'link-local';

const RANK: Readonly<Record<Depth, number>> = { public: 0, private: 1, 'link-local': 2 };

const LINK_LOCAL = blockList([
  // IPv4 and IPv6 link-local: metadata services of clouds, and the guests of this host
  ['169.254.0.0', 16],
  ['fe80::', 10],
  // metadata services that are elsewhere: AWS over IPv6, Alibaba, Oracle
  ['fd00:ec2::254', 128],
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
  // "this network", multicast, reserved and broadcast
  ['0.0.0.0', 8],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['::', 128],
  ['ff00::', 8],
]);

const PRIVATE = blockList([
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['198.18.0.0', 15],
  ['192.0.0.0', 24],
  ['::1', 128],
  ['fc00::', 7],
  ['fec0::', 10],
]);

/** Depth of an IP address. What is no address is as deep as can be. */
export function depthOf(address: string): Depth {
  const family = isIP(address);
  if (family === 0) return 'link-local';
  const v4 = family === 6 ? embeddedV4(address) : undefined;
  if (v4 !== undefined) return depthOf(v4);
  const kind = family === 4 ? 'ipv4' : 'ipv6';
  if (LINK_LOCAL.check(address, kind)) return 'link-local';
  return PRIVATE.check(address, kind) ? 'private' : 'public';
}

export function isWithin(depth: Depth, limit: Depth): boolean {
  return RANK[depth] <= RANK[limit];
}

export function deepest(depths: readonly Depth[]): Depth {
  return depths.reduce((a, b) => (RANK[a] >= RANK[b] ? a : b), 'public');
}

/** The IPv4 address inside a mapped, compatible, NAT64 (RFC 6052) or 6to4 one. */
function embeddedV4(address: string): string | undefined {
  const groups = expand(address);
  if (groups === undefined) return undefined;
  const zeros = (end: number) => groups.slice(0, end).every((group) => group === 0);
  const at = (index: number) => groups[index] ?? 0;
  const dotted = (index: number) =>
    [at(index) >> 8, at(index) & 255, at(index + 1) >> 8, at(index + 1) & 255].join('.');
  if (zeros(5) && at(5) === 0xffff) return dotted(6);
  if (zeros(6) && (at(6) !== 0 || at(7) > 1)) return dotted(6);
  if (at(0) === 0x64 && at(1) === 0xff9b) return dotted(6);
  if (at(0) === 0x2002) return dotted(1);
  return undefined;
}

/** The eight groups of an IPv6 address. */
function expand(address: string): number[] | undefined {
  let text = address.replace(/%.*$/, '');
  const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  if (tail !== null) {
    const [a = 0, b = 0, c = 0, d = 0] = tail.slice(2).map(Number);
    text = `${tail[1]}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  }
  const [head = '', rest] = text.split('::');
  const list = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const before = list(head);
  const after = rest === undefined ? [] : list(rest);
  const groups = [...before, ...new Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0), ...after];
  return groups.length === 8 ? groups : undefined;
}

function blockList(ranges: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [address, bits] of ranges) list.addSubnet(address, bits, isIP(address) === 4 ? 'ipv4' : 'ipv6');
  return list;
}
