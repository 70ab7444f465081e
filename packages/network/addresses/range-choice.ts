import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Cidr, cidr, formatCidr, overlaps, parseCidr } from './ipv4.ts';

/** Where the ranges of instances are taken from when the configuration names none. */
export const DEFAULT_POOL = '10.200.0.0/14';

/** Prefix length of one instance's range: 1,023 slots of four addresses, and a block for the forwarder. */
export const RANGE_PREFIX = 20;

/** The smallest pool that holds a forwarder and one slot. */
const SMALLEST_PREFIX = 29;

/** @throws AenvError `config_invalid` */
export function parsePool(text: string): Cidr {
  const pool = parseCidr(text);
  if (pool === undefined || pool.prefix > SMALLEST_PREFIX || pool.prefix === 0) {
    throw new AenvError(
      'config_invalid',
      `network.cidr must be an IPv4 range like ${DEFAULT_POOL}, /${SMALLEST_PREFIX} or larger, not ${JSON.stringify(text)}`,
    );
  }
  return pool;
}

/**
 * The first range of the pool that overlaps nothing of `taken`: a /20, or the whole pool when it is smaller.
 * @throws AenvError `network_exhausted`
 */
export function chooseRange(pool: Cidr, taken: readonly Cidr[]): Cidr {
  const prefix = Math.max(pool.prefix, RANGE_PREFIX);
  const size = 2 ** (32 - prefix);
  for (let first = pool.first; first <= pool.last; first += size) {
    const range = cidr(first, prefix);
    if (!taken.some((other) => overlaps(range, other))) return range;
  }
  const clashes = taken.filter((other) => overlaps(pool, other)).map(formatCidr);
  throw new AenvError(
    'network_exhausted',
    `no free /${prefix} in ${formatCidr(pool)}: the host has addresses or routes at ${[...new Set(clashes)].slice(0, 8).join(', ')}`,
    { remediation: 'Set `network.cidr` (AENV_NETWORK_CIDR) to a private range that the host does not use.' },
  );
}
