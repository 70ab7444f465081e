import type { Cidr } from '../addresses/ipv4.ts';
import { formatCidr } from '../addresses/ipv4.ts';
import { chooseRange } from '../addresses/range-choice.ts';
import { dnsAddressOf } from '../addresses/range-layout.ts';
import { ipBatch } from './commands.ts';
import type { InstanceNames } from './names.ts';
import { readTaken } from './taken.ts';

/**
 * Chooses a range of the pool and makes it visible to every other chooser by a route for all of it: `unreachable`, so
 * that dialling a slot that is gone fails at once, and with a metric that carries the tag. Also sets the forwarder's
 * address. Call it under the host lock; `removeInstance` undoes it.
 * @throws AenvError `network_exhausted`
 */
export async function claimRange(pool: Cidr, names: InstanceNames): Promise<Cidr> {
  const range = chooseRange(pool, await readTaken());
  await ipBatch([
    `route add unreachable ${formatCidr(range)} metric ${names.claimMetric}`,
    // On the loopback device, which every host has.
    `addr add ${dnsAddressOf(range)}/32 dev lo label ${names.addressLabel}`,
  ]);
  return range;
}

/** The address of the forwarder in a range that was claimed by an earlier daemon, in case somebody has taken it away. */
export async function keepRange(range: Cidr, names: InstanceNames): Promise<void> {
  await ipBatch([`addr replace ${dnsAddressOf(range)}/32 dev lo label ${names.addressLabel}`]);
}
