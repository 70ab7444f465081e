import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import type { Cidr } from '../addresses/ipv4.ts';
import { SLOT_PREFIX, slotAddresses } from '../addresses/range-layout.ts';
import { ipBatch, nftApply } from '../host/commands.ts';
import type { InstanceNames } from '../host/names.ts';
import { removeNamed } from '../host/removal.ts';
import type { EgressPolicy } from './contract.ts';
import { FORGET_DENIED, policyScript, slotRuleset, TAP, UPLINK } from './ruleset.ts';

/** Makes and removes what a slot consists of. The pool decides when. */
export interface SlotMaker {
  /** A slot whose policy is `{ internet: true }`, so that the usual acquire costs nothing. Nothing is left when it throws. */
  build(index: number): Promise<NetworkSlot>;
  apply(slot: NetworkSlot, policy: EgressPolicy): Promise<void>;
  /** The slot of an earlier daemon whose namespace is there still, with today's rules and this policy in force. */
  adopt(index: number, policy: EgressPolicy): Promise<NetworkSlot>;
  /** Removes slots, also such that are half gone. */
  destroy(slots: readonly NetworkSlot[]): Promise<void>;
}

export interface HostSlotMakerOptions {
  /** existing folder of this instance, for scripts while a slot is built */
  readonly workDir: string;
  readonly names: InstanceNames;
  readonly range: Cidr;
  /** uid of slot N is this plus N */
  readonly uidBase: number;
  readonly dnsAddress: string;
  readonly dnsPort: number;
  readonly deniedCidrs: readonly string[];
  /** `veth` puts the end of a pair (its peer is `guest0`) in the tap's place, where a process without a VM plays the guest */
  readonly guestLink: 'tap' | 'veth';
}

/** Kernel parameters of a slot's namespace. */
const SYSCTLS = [
  'net.ipv4.ip_forward=1',
  // Refusals must not be swallowed by the rate limit for ICMP errors (icmp(7)).
  'net.ipv4.icmp_ratemask=0',
  'net.ipv6.conf.all.disable_ipv6=1',
  'net.ipv6.conf.default.disable_ipv6=1',
];

/** The policy that `build` leaves in force. */
export const INITIAL_POLICY: EgressPolicy = { internet: true };

/** Slots made of a network namespace, a veth pair to the host and a tap for the VM. */
export class HostSlotMaker implements SlotMaker {
  readonly #options: HostSlotMakerOptions;

  constructor(options: HostSlotMakerOptions) {
    this.#options = options;
  }

  async build(index: number): Promise<NetworkSlot> {
    const { names, range, uidBase, guestLink, workDir } = this.#options;
    const { gateway, slot } = slotAddresses(range, index);
    const link = names.link(index);
    const netns = names.netns(index);
    const uid = uidBase + index;

    const tap =
      guestLink === 'tap'
        ? `tuntap add dev ${TAP} mode tap user ${uid} group ${uid}`
        : `link add ${TAP} type veth peer name guest0`;
    const insideLinks = [
      'link set dev lo up',
      tap,
      `link set dev ${TAP} address ${GUEST_LINK.tapMac} addrgenmode none`,
      `addr add ${GUEST_LINK.gateway}/${GUEST_LINK.prefixLength} dev ${TAP}`,
      `link set dev ${TAP} up`,
      `link set dev ${UPLINK} addrgenmode none`,
      `addr add ${slot}/${SLOT_PREFIX} dev ${UPLINK}`,
      `link set dev ${UPLINK} up`,
      `route add default via ${gateway}`,
      // The first packet to a restored guest needs no ARP exchange.
      `neigh add ${GUEST_LINK.address} lladdr ${GUEST_LINK.mac} dev ${TAP} nud permanent`,
      '',
    ];
    const rules = slotRuleset({ ...this.#options, slotAddress: slot }) + policyScript(INITIAL_POLICY);

    await using scripts = new Rollback();
    const folder = await mkdtemp(join(workDir, `slot-${index}-`));
    scripts.add(() => rm(folder, { recursive: true, force: true }));
    await Promise.all([
      writeFile(join(folder, 'links'), insideLinks.join('\n')),
      writeFile(join(folder, 'rules'), rules),
    ]);

    await using rollback = new Rollback();
    rollback.add(() => removeNamed({ links: [link], netns: [netns] }));
    // One process of ours, which starts the others itself: starting programs is what building a slot costs, and it
    // costs this process, whose event loop stands still for it, more than it costs a small one.
    const commands = [
      `netns add ${netns}`,
      `link add ${link} type veth peer name ${UPLINK} netns ${netns}`,
      `link set dev ${link} addrgenmode none`,
      `addr add ${gateway}/${SLOT_PREFIX} dev ${link}`,
      `netns exec ${netns} nft -f rules`,
      `netns exec ${netns} ip -batch links`,
      `netns exec ${netns} sysctl -qe -w ${SYSCTLS.join(' ')}`,
      `link set dev ${link} up`,
    ];
    await ipBatch(commands, folder);
    rollback.keep();
    return this.#slot(index);
  }

  async adopt(index: number, policy: EgressPolicy): Promise<NetworkSlot> {
    const slot = this.#slot(index);
    // The daemon before may have listened on another port for names, or known other ranges to deny.
    const rules = slotRuleset({ ...this.#options, slotAddress: slot.hostAddress });
    await nftApply(FORGET_DENIED + rules + policyScript(policy), slot.netns);
    return slot;
  }

  #slot(index: number): NetworkSlot {
    const { names, range, uidBase } = this.#options;
    const { slot } = slotAddresses(range, index);
    return { index, netns: names.netnsPath(index), tap: TAP, hostAddress: slot, uid: uidBase + index };
  }

  async apply(slot: NetworkSlot, policy: EgressPolicy): Promise<void> {
    await nftApply(policyScript(policy), slot.netns);
  }

  async destroy(slots: readonly NetworkSlot[]): Promise<void> {
    const { names } = this.#options;
    await removeNamed({
      links: slots.map((slot) => names.link(slot.index)),
      netns: slots.map((slot) => names.netns(slot.index)),
    });
  }
}
