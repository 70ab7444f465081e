import { join } from 'node:path';
import type { QemuInstall } from './install/qemu-install.ts';

export type Accelerator = 'kvm' | 'tcg';

export interface AcceleratorChoice {
  readonly accelerator: Accelerator;
  /** for people: why not KVM, or how it was shown to work */
  readonly reason: string;
}

/** What a snapshot names as the machine; `microvm` has no versioned types, so the QEMU version belongs to it. */
export const MACHINE = 'microvm';

/** Of translated code, in MiB; QEMU's own default would let every VM grow by 1 GiB. */
const TCG_CACHE_MB = 256;

/**
 * Arguments that every VM has, whatever its devices: machine, firmware, accelerator and the seccomp filter.
 *
 * qboot is named because SeaBIOS, the default of newer versions, was seen to hang under TCG. Devices are found through
 * ACPI, since Debian's kernels do not take virtio-mmio devices from the command line; with ACPI microvm has a second
 * I/O APIC and 24 virtio slots.
 * @param memoryBackend id of the memory object, where the guest's memory is not QEMU's own
 */
export function machineArguments(install: QemuInstall, accelerator: Accelerator, memoryBackend?: string): string[] {
  const machine = [
    `${MACHINE},acpi=on,rtc=on,pit=on,pic=on,isa-serial=on,auto-kernel-cmdline=off,dump-guest-core=off`,
    'suppress-vmdesc=on',
    ...(memoryBackend === undefined ? [] : [`memory-backend=${memoryBackend}`]),
  ];
  const firmware = install.dataDir === undefined ? 'qboot.rom' : join(install.dataDir, 'qboot.rom');
  return [
    '-nodefaults',
    '-no-user-config',
    '-display',
    'none',
    '-no-reboot',
    ...(install.dataDir === undefined ? [] : ['-L', install.dataDir]),
    '-bios',
    firmware,
    '-M',
    machine.join(','),
    ...(accelerator === 'kvm'
      ? ['-accel', 'kvm', '-cpu', 'host,migratable=on']
      : ['-accel', `tcg,thread=multi,tb-size=${TCG_CACHE_MB}`, '-cpu', 'max']),
    '-global',
    'virtio-mmio.force-legacy=false',
    '-sandbox',
    'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
  ];
}
