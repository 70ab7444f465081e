import { stat } from 'node:fs/promises';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { Accelerator } from './machine.ts';

/**
 * The programs that a VMM is started through: nsenter(1) takes it into its network namespace while it still may, then
 * setpriv(1) gives up everything: its own user and group, no other groups, no capability, now or by executing a file.
 * Each replaces itself, so the pid stays that of the process that was started.
 */
export async function confinement(slot: NetworkSlot, accelerator: Accelerator): Promise<[string, ...string[]]> {
  return [
    'nsenter',
    `--net=${slot.netns}`,
    '--',
    'setpriv',
    `--reuid=${slot.uid}`,
    `--regid=${slot.uid}`,
    ...(await groups(accelerator)),
    '--inh-caps=-all',
    '--ambient-caps=-all',
    '--bounding-set=-all',
    '--no-new-privs',
    '--',
  ];
}

/** No supplementary group, except the one that may use /dev/kvm where KVM is used. */
async function groups(accelerator: Accelerator): Promise<string[]> {
  if (accelerator !== 'kvm') return ['--clear-groups'];
  const { mode, gid } = await stat('/dev/kvm');
  return (mode & 0o006) === 0o006 || gid === 0 ? ['--clear-groups'] : [`--groups=${gid}`];
}
