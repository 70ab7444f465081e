import { readFile, readlink, realpath, stat } from 'node:fs/promises';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { VmRecord } from '@aenv/vmm/contract/micro-vm.ts';
import type { BootParts } from '../sandboxes/checkpoints/contract.ts';

export interface Today {
  /** the VMM's program */
  readonly program: string;
  /** path of the tools drive that VMs get */
  readonly toolsDrive: string;
}

/**
 * Why a VM of an earlier daemon cannot be gone on with; undefined when it can. What it runs under and what it was booted from
 * may be of another version, as long as the ledger says which: what is captured of it says so, too. Of a VM whose row does
 * not say, both must be those of today.
 */
export async function objectionTo(
  { vm, boot }: { readonly vm: VmRecord; readonly boot?: BootParts },
  slot: NetworkSlot,
  today: Today,
): Promise<string | undefined> {
  const { pid } = vm.process;
  const [program, wanted, argv, folder] = await Promise.all([
    readlink(`/proc/${pid}/exe`).catch(() => ''),
    realpath(today.program),
    readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
    stat(vm.runDir).catch(() => undefined),
  ]);
  if (vm.build === undefined && program !== wanted) {
    return `it runs under another VMM (${program}) than this daemon would use, and its ledger does not say which version`;
  }
  const drive = boot?.toolsDrive.path ?? today.toolsDrive;
  if (!argv.includes(drive)) return `its tools drive is not ${drive}`;
  if (folder?.uid !== slot.uid) return 'the configuration of the network (users of VMs) has changed';
  return undefined;
}
