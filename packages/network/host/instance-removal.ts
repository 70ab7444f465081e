import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { formatCidr, parseCidr } from '../addresses/ipv4.ts';
import { ipBatchBestEffort, ipJson, isRecord, nftApply } from './commands.ts';
import { handForwardingBack } from './forwarding.ts';
import { listInstances, tagsOf } from './instances.ts';
import { withHostLock } from './lock.ts';
import { type InstanceNames, instanceNames } from './names.ts';
import { listLinks, listNetns, removeNamed } from './removal.ts';

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
  const [links, netns] = await Promise.all([listLinks(), listNetns()]);
  const named = {
    links: [...links].filter((name) => names.ownsLink(name)),
    netns: [...netns].filter((name) => names.ownsNetns(name)),
  };
  await removeNamed(named);

  const { addresses, routes } = await findClaims(names);
  const done = await ipBatchBestEffort([
    ...addresses.map((address) => `addr del ${address}/32 dev lo`),
    ...routes.map((range) => `route del unreachable ${range} metric ${names.claimMetric}`),
  ]);
  const left = done ? { addresses: [], routes: [] } : await findClaims(names);
  if (left.addresses.length + left.routes.length > 0) {
    throw new AenvError('host_command_failed', `could not remove ${[...left.addresses, ...left.routes].join(', ')}`);
  }

  const tables = await withHostLock(clock, log, async () => {
    if (!(await listInstances()).some((record) => record.tag === tag)) return 0;
    await handForwardingBack(tag);
    await nftApply(`delete table inet ${names.table}\n`);
    return 1;
  });
  return {
    netns: named.netns.length,
    links: named.links.length,
    addresses: addresses.length,
    routes: routes.length,
    tables,
  };
}

interface Claims {
  readonly addresses: readonly string[];
  readonly routes: readonly string[];
}

async function findClaims(names: InstanceNames): Promise<Claims> {
  const [links, routes] = await Promise.all([
    ipJson('-4', 'addr', 'show', 'dev', 'lo'),
    ipJson('-4', 'route', 'show', 'table', 'main'),
  ]);
  return {
    addresses: records(links)
      .flatMap((link) => records(link.addr_info))
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
