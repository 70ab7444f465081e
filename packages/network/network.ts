import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { formatCidr } from './addresses/ipv4.ts';
import { DEFAULT_POOL, parsePool } from './addresses/range-choice.ts';
import { dnsAddressOf, slotCapacity, uidOffset } from './addresses/range-layout.ts';
import { DnsForwarder } from './dns/forwarder.ts';
import { ResolvConf } from './dns/resolv-conf.ts';
import { Resolver } from './dns/resolver.ts';
import { checkInstance, checkNetworkHost, type HostCheck } from './host/check.ts';
import { nftApply } from './host/commands.ts';
import { isForwarding, switchForwardingOn } from './host/forwarding.ts';
import { removeInstance, removeStrays } from './host/instance-removal.ts';
import { claimTag, keepTag } from './host/instances.ts';
import { findKept, type KeptInstance } from './host/kept.ts';
import { withHostLock } from './host/lock.ts';
import { type InstanceNames, instanceNames } from './host/names.ts';
import { claimRange, keepRange } from './host/range-claim.ts';
import { removeNamed } from './host/removal.ts';
import { RulesGuard } from './host/rules-guard.ts';
import { hostRuleset } from './host/ruleset.ts';
import type { EgressPolicy, SlotPool } from './slots/contract.ts';
import { deniedRanges } from './slots/denied-ranges.ts';
import { WatermarkPool } from './slots/pool.ts';
import { HostSlotMaker } from './slots/slot-maker.ts';

export interface NetworkOptions {
  /** folder of this daemon alone, absolute; the tag of all names derives from it, `network/` in it is used */
  readonly runtimeDir: string;
  /** five hexadecimal digits instead of the derived tag */
  readonly tag?: string;
  /** where this instance's /20 is taken from; default 10.200.0.0/14 */
  readonly cidr?: string;
  /**
   * uid and gid of slot N are `uidBase` + N, and beyond that for instances whose range is not the first of the pool, so
   * that no two slots of this host share them; default 230000
   */
  readonly uidBase?: number;
  /** see `WatermarkPoolOptions`; default 2 and 8 */
  readonly low?: number;
  readonly high?: number;
  /** ranges that no guest reaches, beside the private and special ones */
  readonly alwaysDeniedCidrs?: readonly string[];
  /** the host's resolver configuration; default /etc/resolv.conf */
  readonly resolvConf?: string;
  /** slots of an earlier daemon in which VMs run on, by the path of their namespace */
  readonly keep?: ReadonlyMap<string, EgressPolicy>;
  /** see `HostSlotMakerOptions.guestLink`; default `tap` */
  readonly guestLink?: 'tap' | 'veth';
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** All that a daemon has of the host's network. */
export interface Network {
  readonly tag: string;
  /** range of all addresses of this instance, `A.B.C.D/N` */
  readonly range: string;
  readonly dnsAddress: string;
  readonly pool: SlotPool;
  /** those of `keep` that are whole, in use from now on; the others are gone */
  readonly kept: ReadonlyMap<string, NetworkSlot>;
  /** Findings about the host and this instance, for doctor. */
  check(): Promise<readonly HostCheck[]>;
  /** Removes everything that this instance made on the host. Idempotent. */
  close(): Promise<void>;
}

const DEFAULTS = { uidBase: 230_000, low: 2, high: 8, resolvConf: '/etc/resolv.conf' };
const DNS_PORT = 53;

/**
 * Sets up this daemon's part of the host's network, after removing what an earlier daemon of the same runtime folder
 * left (whose VMs must be dead, but for those to keep). Slots are built in the background; `pool.acquire` waits for them.
 * @throws AenvError `network_exhausted`, `config_invalid`, `host_command_missing`, `host_command_failed`, `host_unsupported`
 */
export async function createNetwork(options: NetworkOptions): Promise<Network> {
  const { runtimeDir, clock, log, metrics } = options;
  const { uidBase, low, high, resolvConf } = { ...DEFAULTS, ...options };
  const pool = parsePool(options.cidr ?? DEFAULT_POOL);
  const keep = options.keep ?? new Map<string, EgressPolicy>();
  const before = await findKept(runtimeDir, options.tag, pool, [...keep.keys()]);
  const strays = await removeStrays({
    runtimeDir,
    clock,
    log,
    ...(options.tag === undefined ? {} : { tag: options.tag }),
    ...(before === undefined ? {} : { keep: [...before.slots.values()] }),
  });
  if (Object.values(strays).some((count) => count > 0)) log.info('removed what an earlier daemon left', { ...strays });

  await using rollback = new Rollback();
  const tag = before?.tag ?? (await claimTag(runtimeDir, options.tag));
  const names = instanceNames(tag);
  rollback.add(async () => {
    await removeInstance(tag, clock, log);
  });
  const { range, forwardingWasOff } = await withHostLock(clock, log, async () => {
    if (before === undefined) {
      return { forwardingWasOff: await switchForwardingOn(tag), range: await claimRange(pool, names) };
    }
    await keepTag(runtimeDir, tag);
    await keepRange(before.range, names);
    return { forwardingWasOff: await switchForwardingOn(tag), range: before.range };
  });
  const dnsAddress = dnsAddressOf(range);
  const deniedCidrs = deniedRanges(range, options.alwaysDeniedCidrs ?? []);

  // The forwarder knows slots by their addresses, the slots know the forwarder's port: the pool comes second.
  let slots: WatermarkPool | undefined;
  const upstreams = new ResolvConf(resolvConf, clock);
  const resolver = new Resolver(() => upstreams.upstreams());
  const forwarder = new DnsForwarder({ resolver, policyOf: (address) => slots?.policyOf(address), log, metrics });
  rollback.add(() => forwarder.close());
  const dnsPort = await forwarder.listen(dnsAddress, DNS_PORT);

  const rules = hostRuleset({ names, range, dnsAddress, dnsPort });
  await nftApply(rules);
  const guard = new RulesGuard({ names, rules, runtimeDir, forwardingWasOff, clock, log, metrics });
  rollback.add(() => guard.close());
  const workDir = join(runtimeDir, 'network');
  await rm(workDir, { recursive: true, force: true });
  await mkdir(workDir, { recursive: true, mode: 0o700 });
  rollback.add(() => rm(workDir, { recursive: true, force: true }));
  const maker = new HostSlotMaker({
    workDir,
    names,
    range,
    uidBase: uidBase + uidOffset(pool, range),
    dnsAddress,
    dnsPort,
    deniedCidrs,
    guestLink: options.guestLink ?? 'tap',
  });
  const running = new WatermarkPool({ maker, capacity: slotCapacity(range), low, high, clock, log, metrics });
  slots = running;
  rollback.add(() => running.close());
  const kept = await adoptSlots(running, before, keep, names, log);
  guard.start();
  running.start();

  const owned = rollback.keep();
  let closed: Promise<void> | undefined;
  return {
    tag,
    range: formatCidr(range),
    dnsAddress,
    pool: running,
    kept,
    check: async () => [
      ...(await checkNetworkHost()),
      ...(await checkInstance(tag, await guard.inPlace(), await isForwarding())),
    ],
    close() {
      closed ??= owned.run();
      return closed;
    },
  };
}

/** One that is not whole is removed: its VM cannot be reached. */
async function adoptSlots(
  pool: WatermarkPool,
  before: KeptInstance | undefined,
  policies: ReadonlyMap<string, EgressPolicy>,
  names: InstanceNames,
  log: Logger,
): Promise<ReadonlyMap<string, NetworkSlot>> {
  const kept = new Map<string, NetworkSlot>();
  for (const [index, path] of before?.slots ?? []) {
    try {
      kept.set(path, await pool.adopt(index, policies.get(path) ?? { internet: false }));
    } catch (error) {
      log.warn('a network slot of an earlier daemon is not whole, and is removed', { index, error });
      await removeNamed({ links: [names.link(index)], netns: [names.netns(index)] });
    }
  }
  return kept;
}
