import { type Cidr, formatCidr } from '../addresses/ipv4.ts';
import { REFUSE, tableScript } from '../nft/script.ts';
import type { InstanceNames } from './names.ts';

export interface HostRulesetInput {
  readonly names: InstanceNames;
  readonly range: Cidr;
  readonly dnsAddress: string;
  readonly dnsPort: number;
}

/** A chain that is there exactly when the instance's rules are; looked for to see whether someone flushed them. */
export const SENTINEL_CHAIN = 'guard_input';

/**
 * The instance's rules in the host's namespace.
 *
 * A slot's traffic arrives here with the slot's own address, because its namespace translates it. Of the host, a slot
 * reaches the forwarder and nothing else: the input chain holds for every address that the host has or gets.
 */
export function hostRuleset(input: HostRulesetInput): string {
  const { names, dnsAddress, dnsPort } = input;
  const range = formatCidr(input.range);
  const slots = `"${names.linkPattern}"`;
  return tableScript(names.table, {
    refuse: REFUSE,
    from_slot_to_host: {
      rules: [
        'ct state established,related accept',
        `ip daddr ${dnsAddress} meta l4proto { tcp, udp } th dport ${dnsPort} accept`,
        'goto refuse',
      ],
    },
    from_slot_outward: {
      rules: [
        `oifname ${slots} goto refuse`,
        // The host's uplink may have a smaller MTU than the guest's link, and not every network lets ICMP tell.
        'tcp flags syn tcp option maxseg size set rt mtu',
        'accept',
      ],
    },
    to_slot: { rules: ['ct state established,related accept', 'drop'] },
    guard_raw: {
      hook: 'type filter hook prerouting priority raw; policy accept;',
      rules: [`iifname ${slots} meta nfproto ipv6 drop`, `iifname ${slots} fib saddr . iif oif missing drop`],
    },
    [SENTINEL_CHAIN]: {
      hook: 'type filter hook input priority filter; policy accept;',
      rules: [
        `iifname ${slots} goto from_slot_to_host`,
        // The range is for this host alone, not for neighbours that happen to route to it.
        `iifname != "lo" ip daddr ${range} drop`,
      ],
    },
    guard_forward: {
      hook: 'type filter hook forward priority filter; policy accept;',
      rules: [`iifname ${slots} goto from_slot_outward`, `oifname ${slots} goto to_slot`],
    },
    nat_out: {
      hook: 'type nat hook postrouting priority srcnat; policy accept;',
      rules: [`ip saddr ${range} oifname != ${slots} masquerade`],
    },
  });
}
