import { readFile, writeFile } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type InstanceRecord, markForwardingWasOff } from './instances.ts';

/** In the network namespace of this process (proc_sys_net(5)). */
const IP_FORWARD = '/proc/sys/net/ipv4/ip_forward';

export async function isForwarding(): Promise<boolean> {
  return (await readFile(IP_FORWARD, 'utf8')).trim() === '1';
}

/**
 * Switches IPv4 forwarding on when it is off, and remembers that in the instance's table. Call it under the host lock.
 * @returns whether it was off
 * @throws AenvError `host_unsupported` when it is off and /proc/sys is read-only, as in an unprivileged container
 */
export async function switchForwardingOn(tag: string): Promise<boolean> {
  if (await isForwarding()) return false;
  await markForwardingWasOff(tag);
  try {
    await writeFile(IP_FORWARD, '1');
    return true;
  } catch (error) {
    throw new AenvError('host_unsupported', 'IPv4 forwarding is off and cannot be switched on from here', {
      remediation: 'Run `sysctl -w net.ipv4.ip_forward=1` on the host, or start the container with that setting.',
      cause: error,
    });
  }
}

/**
 * Undoes `switchForwardingOn` for an instance that ends: off again, unless other instances need it; then one of them
 * takes over the duty. Call it under the host lock, while the instance's table still exists.
 * @param records all instances, this one included, read under the same lock
 */
export async function handForwardingBack(tag: string, records: readonly InstanceRecord[]): Promise<void> {
  if (records.find((record) => record.tag === tag)?.forwardingWasOff !== true) return;
  const heir = records.find((record) => record.tag !== tag);
  if (heir === undefined) await writeFile(IP_FORWARD, '0');
  else await markForwardingWasOff(heir.tag);
}
