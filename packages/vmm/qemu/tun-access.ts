import { chmod, stat } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';

export const TUN_DEVICE = '/dev/net/tun';
const EVERYONE = 0o006;

/** Whether users without privileges may open the TUN device; undefined when the host has none. */
export async function isTunOpenToUsers(device: string = TUN_DEVICE): Promise<boolean | undefined> {
  const found = await stat(device).catch(() => undefined);
  return found === undefined ? undefined : (found.mode & EVERYONE) === EVERYONE;
}

/**
 * Lets the users of VMs open the TUN device, as udev does wherever it runs (mode 0666). The kernel checks by itself who
 * may use which link: without CAP_NET_ADMIN only its owner (Documentation/networking/tuntap.rst).
 * @throws AenvError `host_unsupported` when the host has no such device
 */
export async function openTunToUsers(log: Logger, device: string = TUN_DEVICE): Promise<void> {
  const open = await isTunOpenToUsers(device);
  if (open === undefined) {
    throw new AenvError('host_unsupported', `this host has no ${device}`, {
      remediation: 'Load the kernel module with `modprobe tun`; in a container, pass the device in.',
    });
  }
  if (open) return;
  log.warn('giving the TUN device the mode that udev would give it', { device, mode: '0666' });
  await chmod(device, 0o666);
}
