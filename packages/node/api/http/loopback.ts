import { BlockList, isIP } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether the address of a peer is on this host's loopback; IPv4 in IPv6 (`::ffff:127.0.0.1`) counts as IPv4. */
export function isLoopback(address: string | undefined): boolean {
  const plain = address?.replace(/^::ffff:(?=\d+\.)/i, '') ?? '';
  const version = isIP(plain);
  return version !== 0 && loopback.check(plain, version === 6 ? 'ipv6' : 'ipv4');
}
