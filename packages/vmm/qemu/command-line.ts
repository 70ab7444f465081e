import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';
import type { VmShape, VmSpec } from '../contract/micro-vm.ts';
import { CONSOLE_RING, CONSOLE_RING_SIZE } from './console-ring.ts';
import { driveArguments } from './drives.ts';
import type { QemuInstall } from './install/qemu-install.ts';
import { type Accelerator, machineArguments } from './machine.ts';
import { RAM } from './memory/guest-memory.ts';
import type { MemoryFile } from './memory/memory-file.ts';

export interface CommandLineParts {
  readonly install: QemuInstall;
  readonly accelerator: Accelerator;
  readonly memory: MemoryFile;
  readonly qmpSocket: string;
}

/** The arguments of qemu-system-x86_64 for a cold boot. */
export function bootCommandLine(spec: VmSpec, parts: CommandLineParts): string[] {
  return [
    ...shapeArguments(spec, parts),
    ...['-kernel', spec.kernel, '-initrd', spec.initramfs, '-append', spec.kernelArgs],
  ];
}

/**
 * The same machine, waiting for its state (`migrate-incoming`) and then for `cont`. A state file has no configuration
 * section, and the loading side must be told so. Kernel and initramfs are in the memory already.
 */
export function restoreCommandLine(shape: VmShape, parts: CommandLineParts): string[] {
  return [
    ...shapeArguments(shape, parts),
    ...['-global', 'migration.send-configuration=off', '-incoming', 'defer', '-S'],
  ];
}

/**
 * What a machine is made of, in an order that a captured state depends on.
 *
 * No balloon: QEMU gives pages back by punching holes into the memory file, private mapping or not, which would damage
 * the base of every other VM. No virtio-serial: its ports were seen dead after a restore.
 */
function shapeArguments(spec: VmShape, parts: CommandLineParts): string[] {
  return [
    ...machineArguments(parts.install, parts.accelerator, RAM),
    '-name',
    `guest=${spec.incarnation},debug-threads=on`,
    // A guest that powers off or panics leaves its console behind to be read; the driver ends the process then.
    '-action',
    'reboot=shutdown,shutdown=pause,panic=pause',
    '-smp',
    String(spec.cpuCount),
    '-m',
    `${spec.memoryMb}M`,
    '-object',
    JSON.stringify(memoryBackend(spec.memoryMb * 1024 * 1024, parts.memory)),
    '-chardev',
    `socket,id=qmp,path=${escapeComma(parts.qmpSocket)},server=on,wait=off`,
    '-mon',
    'chardev=qmp,mode=control',
    '-chardev',
    `ringbuf,id=${CONSOLE_RING},size=${CONSOLE_RING_SIZE}`,
    '-serial',
    `chardev:${CONSOLE_RING}`,
    '-object',
    JSON.stringify({ 'qom-type': 'rng-random', id: 'rng0', filename: '/dev/urandom' }),
    '-device',
    JSON.stringify({ driver: 'virtio-rng-device', rng: 'rng0' }),
    '-netdev',
    `tap,id=net0,ifname=${spec.network.tap},script=no,downscript=no`,
    '-device',
    JSON.stringify({ driver: 'virtio-net-device', netdev: 'net0', mac: GUEST_LINK.mac }),
    ...driveArguments(spec.drives),
  ];
}

function memoryBackend(size: number, { path, access }: MemoryFile): Readonly<Record<string, unknown>> {
  const common = { id: RAM, size, share: false };
  if (access === 'none') return { 'qom-type': 'memory-backend-ram', ...common };
  const readOnly = access === 'read' ? { readonly: true, rom: 'off' } : {};
  return { 'qom-type': 'memory-backend-file', ...common, 'mem-path': path, ...readOnly };
}

/** QEMU's key=value syntax takes a doubled comma for one in a value. */
function escapeComma(value: string): string {
  return value.replaceAll(',', ',,');
}
