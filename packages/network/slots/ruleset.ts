import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';
import { REFUSE, tableScript } from '../nft/script.ts';
import type { EgressPolicy } from './contract.ts';

/** Names inside every slot's namespace; they need no tag. */
export const TAP = 'tap0';
export const UPLINK = 'veth0';
const TABLE = 'aenv';

/**
 * Flows that one guest may have open at once, to the outside and for questions for names: the host tracks each of them
 * too, in a table that all share.
 */
const MAX_FLOWS = { outside: 4096, names: 2048 };

export interface SlotRulesetInput {
  readonly slotAddress: string;
  readonly dnsAddress: string;
  readonly dnsPort: number;
  readonly deniedCidrs: readonly string[];
}

/**
 * The rules inside a slot's namespace, with a policy that lets nothing out.
 *
 * Flows that the host opened pass both ways. Flows that the guest opened are judged packet by packet, in both
 * directions and by the destination that the guest asked for (`ct original`): nothing passes merely because its flow
 * was once accepted, so a change of policy holds for open flows at once.
 */
export function slotRuleset(input: SlotRulesetInput): string {
  const { slotAddress, dnsAddress, dnsPort, deniedCidrs } = input;
  const inward = `iifname "${UPLINK}" oifname "${TAP}"`;
  const outward = `iifname "${TAP}" oifname "${UPLINK}"`;
  return tableScript(
    TABLE,
    {
      refuse: REFUSE,
      egress: { rules: ['goto refuse'] },
      // The forwarder is the one service of the host that a guest reaches; it knows the policy itself.
      names: { rules: [`ct state new ct count over ${MAX_FLOWS.names} goto refuse`, 'accept'] },
      guest_flow: {
        rules: [
          `ct original ip daddr ${GUEST_LINK.gateway} goto names`,
          'ct original ip daddr @denied goto refuse',
          `ct state new ct count over ${MAX_FLOWS.outside} goto refuse`,
          'goto egress',
        ],
      },
      guard_raw: {
        hook: 'type filter hook prerouting priority raw; policy accept;',
        rules: ['meta nfproto ipv6 drop', `iifname "${TAP}" ip saddr != ${GUEST_LINK.address} drop`],
      },
      nat_in: {
        hook: 'type nat hook prerouting priority dstnat; policy accept;',
        rules: [
          `iifname "${UPLINK}" ip daddr ${slotAddress} dnat ip to ${GUEST_LINK.address}`,
          `iifname "${TAP}" ip daddr ${GUEST_LINK.gateway} meta l4proto { tcp, udp } th dport 53 dnat ip to ${dnsAddress}:${dnsPort}`,
        ],
      },
      nat_out: {
        hook: 'type nat hook postrouting priority srcnat; policy accept;',
        rules: [`oifname "${UPLINK}" snat ip to ${slotAddress}`],
      },
      guard_forward: {
        hook: 'type filter hook forward priority filter; policy drop;',
        rules: [
          'ct state invalid drop',
          `${inward} ct direction original ct status dnat accept`,
          `${outward} ct direction reply accept`,
          `${outward} goto guest_flow`,
          `${inward} ct direction reply goto guest_flow`,
        ],
      },
      guard_input: {
        hook: 'type filter hook input priority filter; policy drop;',
        rules: ['iifname "lo" accept', 'goto refuse'],
      },
    },
    [
      '  set denied {',
      '    type ipv4_addr',
      '    flags interval',
      '    auto-merge',
      `    elements = { ${deniedCidrs.join(', ')} }`,
      '  }',
    ],
  );
}

/** To come before `slotRuleset` in a namespace that has those rules already, in the same transaction. */
export const FORGET_DENIED = `flush set inet ${TABLE} denied\n`;

/** Replaces what the policy allows, in one transaction. */
export function policyScript(policy: EgressPolicy): string {
  return tableScript(TABLE, { egress: { rules: [policy.internet ? 'accept' : 'goto refuse'] } });
}
