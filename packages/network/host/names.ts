import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** Where `ip netns` keeps named namespaces (ip-netns(8)). */
export const NETNS_DIR = '/run/netns';

/** The names of all that one instance makes on the host. The tag tells instances apart; link names have at most 15 characters. */
export interface InstanceNames {
  readonly tag: string;
  /** nft table, family inet */
  readonly table: string;
  /** label of the forwarder's address on the loopback device */
  readonly addressLabel: string;
  /** metric of the route that claims the range; it carries the tag, so that the route is found after a crash */
  readonly claimMetric: number;
  /** nft pattern that matches the host ends of all veth pairs */
  readonly linkPattern: string;
  link(index: number): string;
  netns(index: number): string;
  netnsPath(index: number): string;
  ownsLink(name: string): boolean;
  ownsNetns(name: string): boolean;
}

const CLAIM_METRIC_BASE = 0x0ae0_0000;

export function isTag(text: string): boolean {
  return /^[0-9a-f]{5}$/.test(text);
}

export function instanceNames(tag: string): InstanceNames {
  if (!isTag(tag)) throw new RangeError(`not an instance tag: ${tag}`);
  // A letter that is no hexadecimal digit ends the tag, so that no tag is the beginning of another's names.
  const linkPrefix = `ae${tag}v`;
  const netnsPrefix = `aenv-${tag}-`;
  const owns = (prefix: string) => (name: string) =>
    name.startsWith(prefix) && /^\d{1,4}$/.test(name.slice(prefix.length));
  return {
    tag,
    table: `aenv_${tag}`,
    addressLabel: `lo:ae${tag}`,
    claimMetric: CLAIM_METRIC_BASE + Number.parseInt(tag, 16),
    linkPattern: `${linkPrefix}*`,
    link: (index) => `${linkPrefix}${index}`,
    netns: (index) => `${netnsPrefix}${index}`,
    netnsPath: (index) => join(NETNS_DIR, `${netnsPrefix}${index}`),
    ownsLink: owns(linkPrefix),
    ownsNetns: owns(netnsPrefix),
  };
}

/** The tag for a runtime folder; `attempt` counts up when another folder's instance already has it. */
export function tagOf(runtimeDir: string, attempt = 0): string {
  return digest(`${runtimeDir}\n${attempt}`).slice(0, 5);
}

/** Name of the empty chain that says which runtime folder a table belongs to. */
export function ownerChain(runtimeDir: string): string {
  return `home_${digest(runtimeDir).slice(0, 32)}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
