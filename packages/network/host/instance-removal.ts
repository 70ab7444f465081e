import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { formatCidr, parseCidr } from '../addresses/ipv4.ts';
import { ipBatchBestEffort, ipJson, isRecord, nftApply } from './commands.ts';
import { handForwardingBack } from './forwarding.ts';
import { listInstances, tagsOf } from './instances.ts';
import { indexOf } from './kept.ts';
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
  /** paths of namespaces that stay, with their links and with what the instance needs for them: their VMs run on */
  readonly keep?: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Removes everything that instances of this runtime folder left on the host. Call it only when no daemon of this folder
 * runs and its VMs are dead, but for those to keep: a namespace with a live process in it loses its name and its uplink, but lives on.
 * @throws AenvError `host_command_failed` naming what could not be removed
 */
export async function removeStrays(options: RemoveStraysOptions): Promise<Removed> {
  const tags = await tagsOf(options.runtimeDir, options.tag);
  let total: Removed = { netns: 0, links: 0, addresses: 0, routes: 0, tables: 0 };
  for (const tag of tags) {
    const one = await removeInstance(tag, options.clock, options.log, options.keep);
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

/**
 * Removes all that carries this tag; the table last, because it says that the rest may be there.
 * @param keep paths of namespaces that stay; if there is one of this tag, only other slots are removed
 */
export async function removeInstance(
  tag: string,
  clock: Clock,
  log: Logger,
  keep: readonly string[] = [],
): Promise<Removed> {
  const names = instanceNames(tag);
  const kept = keep.flatMap((path) => indexOf(names, path) ?? []);
  const find = async () => without(await findRemains(names), names, kept);
  const found = await find();
  const done = await ipBatchBestEffort([
    ...found.links.map((name) => `link del dev ${name}`),
    ...found.netns.map((name) => `netns del ${name}`),
    ...found.addresses.map((address) => `addr del ${address}/32 dev lo`),
    ...found.routes.map((range) => `route del unreachable ${range} metric ${names.claimMetric}`),
  ]);
  if (!done) {
    const left = Object.values(await find()).flat();
    if (left.length > 0) throw new AenvError('host_command_failed', `could not remove ${left.join(', ')}`);
  }
  const tables = await withHostLock(clock, log, async () => {
    if (kept.length > 0) return 0;
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

function without(remains: Remains, names: InstanceNames, kept: readonly number[]): Remains {
  if (kept.length === 0) return remains;
  const links = new Set(kept.map((index) => names.link(index)));
  const netns = new Set(kept.map((index) => names.netns(index)));
  return {
    links: remains.links.filter((name) => !links.has(name)),
    netns: remains.netns.filter((name) => !netns.has(name)),
    addresses: [],
    routes: [],
  };
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
