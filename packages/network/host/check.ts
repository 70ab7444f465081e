import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isRecord, NETWORK_HOST_PROGRAMS, nftJson } from './commands.ts';
import { listInstances } from './instances.ts';
import { instanceNames } from './names.ts';

/** One finding about the host, for people and for `aenv doctor`. */
export interface HostCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  /** the command or the setting that mends it */
  readonly remedy?: string;
}

/** Whether this host can carry slots. Changes nothing, needs no running daemon, and reports problems instead of throwing. */
export async function checkNetworkHost(): Promise<readonly HostCheck[]> {
  const basic = [await checkPrograms(), await checkTun()];
  if (basic.some((check) => !check.ok)) return basic;
  return [...basic, ...(await checkFirewall())];
}

async function checkPrograms(): Promise<HostCheck> {
  const missing: string[] = [];
  for (const program of Object.keys(NETWORK_HOST_PROGRAMS)) {
    if (!(await isInstalled(program))) missing.push(program);
  }
  const name = 'network programs';
  if (missing.length === 0) return { name, ok: true, detail: Object.keys(NETWORK_HOST_PROGRAMS).join(', ') };
  const packages = [...new Set(missing.map((program) => NETWORK_HOST_PROGRAMS[program]))];
  return {
    name,
    ok: false,
    detail: `not installed: ${missing.join(', ')}`,
    remedy: `apt-get install -y ${packages.join(' ')}`,
  };
}

async function isInstalled(program: string): Promise<boolean> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    try {
      await access(join(folder, program), constants.X_OK);
      return true;
    } catch {
      // not in this folder
    }
  }
  return false;
}

async function checkTun(): Promise<HostCheck> {
  const name = 'tap devices';
  try {
    const device = await stat('/dev/net/tun');
    // VMs open it as users of their own.
    if ((device.mode & 0o006) === 0o006) return { name, ok: true, detail: '/dev/net/tun is open to all users' };
    return { name, ok: false, detail: '/dev/net/tun is closed to VM users', remedy: 'chmod 0666 /dev/net/tun' };
  } catch {
    return { name, ok: false, detail: '/dev/net/tun is missing', remedy: 'modprobe tun' };
  }
}

async function checkFirewall(): Promise<readonly HostCheck[]> {
  let ruleset: readonly unknown[];
  try {
    ruleset = await nftJson('list', 'ruleset');
  } catch (error) {
    return [
      { name: 'nftables', ok: false, detail: AenvError.from(error).message, remedy: 'run as root; modprobe nf_tables' },
    ];
  }
  const blocking = foreignDropChains(ruleset);
  const nftables: HostCheck = { name: 'nftables', ok: true, detail: 'the ruleset can be read' };
  if (blocking.length === 0)
    return [nftables, { name: 'firewall', ok: true, detail: 'no chain of others drops by default' }];
  return [
    nftables,
    ...blocking.map((chain) => ({
      name: 'firewall',
      ok: false,
      detail:
        chain.hook === 'forward'
          ? `chain ${chain.name} of another program drops forwarded traffic by default: sandboxes may not reach the outside`
          : `chain ${chain.name} of another program drops input by default: sandboxes may not reach the DNS forwarder`,
      remedy: chain.remedy,
    })),
  ];
}

export interface DropChain {
  readonly name: string;
  readonly hook: 'forward' | 'input';
  readonly remedy: string;
}

/**
 * Base chains of others with the policy drop and no rule that names our links. Every base chain of a hook must accept a
 * packet, so our own rules cannot overrule them; accepting our links there is safe, since our rules still hold.
 */
export function foreignDropChains(ruleset: readonly unknown[]): readonly DropChain[] {
  const found: DropChain[] = [];
  for (const entry of ruleset) {
    const chain = isRecord(entry) ? entry.chain : undefined;
    if (!isRecord(chain) || chain.policy !== 'drop') continue;
    const { family, table, name, hook } = chain;
    if ((hook !== 'forward' && hook !== 'input') || (family !== 'inet' && family !== 'ip')) continue;
    const acceptsOurs = ruleset.some((other) => {
      const rule = isRecord(other) ? other.rule : undefined;
      if (!isRecord(rule) || rule.table !== table || rule.chain !== name || rule.family !== family) return false;
      return JSON.stringify(rule.expr).includes('"ae*"');
    });
    if (acceptsOurs) continue;
    const insert = `nft insert rule ${family} ${table} ${name}`;
    const inward = `${insert} iifname '"ae*"' accept`;
    found.push({
      name: `${family} ${table} ${name}`,
      hook,
      remedy: hook === 'forward' ? `${inward}; ${insert} oifname '"ae*"' ct state established,related accept` : inward,
    });
  }
  return found;
}

/** Whether the rules of a running instance are still in place. */
export async function checkInstance(
  tag: string,
  rulesInPlace: boolean,
  forwarding: boolean,
): Promise<readonly HostCheck[]> {
  const { table } = instanceNames(tag);
  const known = (await listInstances()).some((record) => record.tag === tag);
  return [
    known && rulesInPlace
      ? { name: 'instance rules', ok: true, detail: `table inet ${table}` }
      : {
          name: 'instance rules',
          ok: false,
          detail: `the rules of table inet ${table} are gone: another program flushed them`,
          remedy: 'they come back by themselves within seconds; keep other programs from flushing the whole ruleset',
        },
    forwarding
      ? { name: 'ip_forward', ok: true, detail: 'on' }
      : { name: 'ip_forward', ok: false, detail: 'was switched off', remedy: 'sysctl -w net.ipv4.ip_forward=1' },
  ];
}
