import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { formatCidr, parseCidr } from '../addresses/ipv4.ts';
import { ipBatchBestEffort, ipJson, isRecord, nftApply } from './commands.ts';
import { handForwardingBack } from './forwarding.ts';
import { listInstances, tagsOf } from './instances.ts';
import { withHostLock } from './lock.ts';
import { type InstanceNames, instanceNames } from './names.ts';
import { listNetns } from './removal.ts';

export interface Removed {
  readonly netns: number;
  readonly links: number;
  readonly addresses: number;
  readonly routes: number;
  readonly tables: number;
}

export interface RemoveStraysOptions {
  readonly runtimeDir: string;
  /** a fixed tag instead of those derived from the folder */
  readonly tag?: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Removes everything that instances of this runtime folder left on the host. Call it only when no daemon of this folder
 * runs and its VMs are dead: a namespace with a live process in it loses its name and its uplink, but lives on.
 * @throws AenvError `host_command_failed` naming what could not be removed
 */
export async function removeStrays(options: RemoveStraysOptions): Promise<Removed> {
  const tags = await tagsOf(options.runtimeDir, options.tag);
  let total: Removed = { netns: 0, links: 0, addresses: 0, routes: 0, tables: 0 };
  for (const tag of tags) {
    const one = await removeInstance(tag, options.clock, options.log);
    total = {
      netns: total.netns + one.netns,
      links: total.links + one.links,
      addresses: total.addresses + one.addresses,
      routes: total.routes + one.routes,
      tables: total.tables + one.tables,
    };
  }
  return total;
}

/** Removes all that carries this tag; the table last, because it says that the rest may be there. */
export async function removeInstance(tag: string, clock: Clock, log: Logger): Promise<Removed> {
  const names = instanceNames(tag);
  const found = await findRemains(names);
  const done = await ipBatchBestEffort([
    ...found.links.map((name) => `link del dev ${name}`),
    ...found.netns.map((name) => `netns del ${name}`),
    ...found.addresses.map((address) => `addr del ${address}/32 dev lo`),
    ...found.routes.map((range) => `route del unreachable ${range} metric ${names.claimMetric}`),
  ]);
  if (!done) {
    const left = Object.values(await findRemains(names)).flat();
    if (left.length > 0) throw new AenvError('host_command_failed', `could not remove ${left.join(', ')}`);
  }
  const tables = await withHostLock(clock, log, async () => {
    const records = await listInstances();
    if (!records.some((record) => record.tag === tag)) return 0;
    await handForwardingBack(tag, records);
    await nftApply(`delete table inet ${names.table}\n`);
    return 1;
  });
  return {
    netns: found.netns.length,
    links: found.links.length,
    addresses: found.addresses.length,
    routes: found.routes.length,
    tables,
  };
}

interface Remains {
  readonly links: readonly string[];
  readonly netns: readonly string[];
  readonly addresses: readonly string[];
  readonly routes: readonly string[];
}

async function findRemains(names: InstanceNames): Promise<Remains> {
  const [netns, devices, routes] = await Promise.all([
    listNetns(),
    ipJson('addr', 'show'),
    ipJson('-4', 'route', 'show', 'table', 'main'),
  ]);
  return {
    links: records(devices)
      .map((device) => String(device.ifname))
      .filter((name) => names.ownsLink(name)),
    netns: [...netns].filter((name) => names.ownsNetns(name)),
    addresses: records(devices)
      .flatMap((device) => records(device.addr_info))
      .filter((info) => info.label === names.addressLabel)
      .map((info) => String(info.local)),
    routes: records(routes)
      .filter((route) => route.type === 'unreachable' && route.metric === names.claimMetric)
      .flatMap((route) => parseCidr(String(route.dst)) ?? [])
      .map(formatCidr),
  };
}

function records(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
