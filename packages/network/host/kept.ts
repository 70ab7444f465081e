import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { type Cidr, parseCidr } from '../addresses/ipv4.ts';
import { ipJson, isRecord } from './commands.ts';
import { tagsOf } from './instances.ts';
import { type InstanceNames, instanceNames } from './names.ts';

/** What of an earlier daemon of the same folder goes on, because VMs run in its slots. */
export interface KeptInstance {
  readonly tag: string;
  readonly range: Cidr;
  /** namespaces that are there, by the index of their slot */
  readonly slots: ReadonlyMap<number, string>;
}

/**
 * The instance that namespaces belong to, if it can go on: its range is claimed still, lies in `pool`, and at least one
 * namespace is there.
 * @param netns absolute paths of namespaces
 */
export async function findKept(
  runtimeDir: string,
  fixedTag: string | undefined,
  pool: Cidr,
  netns: readonly string[],
): Promise<KeptInstance | undefined> {
  if (netns.length === 0) return undefined;
  for (const tag of await tagsOf(runtimeDir, fixedTag)) {
    const names = instanceNames(tag);
    const slots = new Map(
      netns.flatMap((path) => {
        const index = indexOf(names, path);
        return index === undefined || !existsSync(path) ? [] : [[index, path] as const];
      }),
    );
    const range = slots.size === 0 ? undefined : await claimedRange(names);
    if (range !== undefined && range.first >= pool.first && range.last <= pool.last) return { tag, range, slots };
  }
  return undefined;
}

/** Index of the slot with this namespace, if it is one of the instance. */
export function indexOf(names: InstanceNames, path: string): number | undefined {
  const name = basename(path);
  const index = Number(name.slice(name.lastIndexOf('-') + 1));
  return names.ownsNetns(name) && names.netnsPath(index) === path ? index : undefined;
}

async function claimedRange(names: InstanceNames): Promise<Cidr | undefined> {
  const routes = await ipJson('-4', 'route', 'show', 'table', 'main');
  if (!Array.isArray(routes)) return undefined;
  const claim = routes
    .filter(isRecord)
    .find((route) => route.type === 'unreachable' && route.metric === names.claimMetric);
  return claim === undefined ? undefined : parseCidr(String(claim.dst));
}
