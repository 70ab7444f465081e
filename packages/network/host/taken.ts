import { type Cidr, cidr, parseCidr, parseIpv4 } from '../addresses/ipv4.ts';
import { ipJson, isRecord } from './commands.ts';

/** All IPv4 ranges that the host has an address in or a route to, in any table. */
export async function readTaken(): Promise<readonly Cidr[]> {
  const [addresses, routes] = await Promise.all([
    ipJson('-4', 'addr', 'show'),
    ipJson('-4', 'route', 'show', 'table', 'all'),
  ]);
  return [...rangesOfAddresses(addresses), ...rangesOfRoutes(routes)];
}

/** From the output of `ip -j addr`. */
export function rangesOfAddresses(links: unknown): Cidr[] {
  const ranges: Cidr[] = [];
  for (const link of list(links)) {
    for (const info of list(link.addr_info)) {
      const address = parseIpv4(String(info.local));
      const prefix = Number(info.prefixlen);
      if (address !== undefined && prefix >= 0 && prefix <= 32) ranges.push(cidr(address, prefix));
    }
  }
  return ranges;
}

/**
 * From the output of `ip -j route`. Routes that stand for "everything" say nothing about what is in use: the default
 * route, and the pair of halves (0.0.0.0/1, 128.0.0.0/1) that VPN clients set over it.
 */
export function rangesOfRoutes(routes: unknown): Cidr[] {
  const ranges: Cidr[] = [];
  for (const route of list(routes)) {
    const range = parseCidr(String(route.dst));
    if (range !== undefined && range.prefix > 1) ranges.push(range);
  }
  return ranges;
}

function list(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
