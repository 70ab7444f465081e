import { ROOT_LABEL } from '@aenv/contracts/guest/layout.ts';
import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';
import { run } from '@aenv/platform/process/run.ts';
import type { GuestFile } from './contract.ts';

export interface KernelArgsOptions {
  readonly accelerator: 'kvm' | 'tcg';
  /** rate of the host's TSC in kHz; needed with `tcg` */
  readonly tscKhz?: number;
  /** UUID of the tools drive */
  readonly toolsUuid: string;
  readonly hostname: string;
}

/**
 * The kernel's command line. Everything in it is public: it can be read in the guest.
 *
 * Under emulation the guest's TSC is the host's, and calibrating it against the emulated timers fails on many boots,
 * which then hang for want of a clock; so the rate is given.
 */
export function kernelArgs(options: KernelArgsOptions): string {
  if (!/^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$/.test(options.hostname)) throw new RangeError('hostname');
  if (!/^[0-9a-f-]{36}$/.test(options.toolsUuid)) throw new RangeError('toolsUuid');
  const { address, prefixLength, gateway, tapMac } = GUEST_LINK;
  return [
    'console=ttyS0',
    'quiet',
    'loglevel=1',
    // a guest that panics ends at once, and its VM with it
    'panic=-1',
    'reboot=t',
    // self-tests of algorithms, and what protects one user of a kernel from another's speculation: a tenth of the boot
    'cryptomgr.notests=1',
    'mitigations=off',
    'audit=0',
    'lsm=',
    'init_on_alloc=0',
    ...tscArgs(options),
    `aenv.root=LABEL=${ROOT_LABEL}`,
    `aenv.tools=UUID=${options.toolsUuid}`,
    `aenv.net=${address}/${prefixLength},${gateway},${tapMac}`,
    `aenv.hostname=${options.hostname}`,
  ].join(' ');
}

function tscArgs({ accelerator, tscKhz }: KernelArgsOptions): string[] {
  // with KVM the guest has a clock of the hypervisor
  if (accelerator === 'kvm') return [];
  if (tscKhz === undefined || !Number.isSafeInteger(tscKhz) || tscKhz < 100_000) throw new RangeError('tscKhz');
  return [`tsc_early_khz=${tscKhz}`, 'tsc=reliable'];
}

/**
 * The rate of this host's TSC in kHz, measured over a quarter of a second.
 * @param native the native program, which runs on the host too
 * @throws AenvError `host_command_failed` when this processor has none
 */
export async function measureTscKhz(native: GuestFile, signal?: AbortSignal): Promise<number> {
  const { stdout } = await run([native.path, 'clock', 'tsc-khz'], signal === undefined ? {} : { signal });
  return Number(stdout.trim());
}
