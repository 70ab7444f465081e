import { readFile, readlink, realpath, stat } from 'node:fs/promises';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { VmRecord } from '@aenv/vmm/contract/micro-vm.ts';

export interface Today {
  /** the VMM's program */
  readonly program: string;
  /** path of the tools drive that VMs get */
  readonly toolsDrive: string;
}

/**
 * Why a VM of an earlier daemon is not one that this daemon could have started: what it captures of it would be continued
 * by another program, or with another drive, and its disk would be served to another user. Undefined when it is.
 */
export async function objectionTo(vm: VmRecord, slot: NetworkSlot, today: Today): Promise<string | undefined> {
  const { pid } = vm.process;
  const [program, wanted, argv, folder] = await Promise.all([
    readlink(`/proc/${pid}/exe`).catch(() => ''),
    realpath(today.program),
    readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
    stat(vm.runDir).catch(() => undefined),
  ]);
  if (program !== wanted) return `it runs under another VMM (${program}) than this daemon would use`;
  if (!argv.includes(today.toolsDrive)) return 'its tools drive is of another version';
  if (folder?.uid !== slot.uid) return 'the configuration of the network (users of VMs) has changed';
  return undefined;
}
