import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import { run } from '@aenv/platform/process/run.ts';

const FIRST_UID = 61_000;

/** Namespaces with nothing but a tap for one VM. The guest is dialled from inside, so the host's network has no part. */
export class TestSlots {
  readonly #names: string[] = [];

  async make(): Promise<NetworkSlot> {
    const index = this.#names.length + 1;
    const name = `vmmt-${process.pid}-${index}`;
    const uid = FIRST_UID + index;
    await run(['ip', 'netns', 'add', name]);
    this.#names.push(name);
    const { address, gateway, prefixLength, mac, tapMac } = GUEST_LINK;
    const lines = [
      `tuntap add dev tap0 mode tap user ${uid}`,
      `addr add ${gateway}/${prefixLength} dev tap0`,
      `link set tap0 address ${tapMac}`,
      'link set tap0 up',
      'link set lo up',
      `neigh add ${address} lladdr ${mac} dev tap0 nud permanent`,
    ];
    await run(['ip', '-n', name, '-batch', '-'], { input: `${lines.join('\n')}\n` });
    return { index, netns: `/run/netns/${name}`, tap: 'tap0', hostAddress: address, uid };
  }

  async close(): Promise<void> {
    for (const name of this.#names.splice(0)) await run(['ip', 'netns', 'del', name]);
  }
}
