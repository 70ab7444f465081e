import type { DriveSource } from '@aenv/contracts/vm/drive.ts';
import type { VmDrive } from '../contract/micro-vm.ts';

/** How long requests wait for an NBD server that went away, in seconds, before the guest sees an error. */
const NBD_RECONNECT_SECONDS = 30;

/**
 * Of the machine's 24 virtio slots, network and entropy take two. Guests were seen to hang when the last slot is in use,
 * with 22 drives; 16 leaves room for other devices.
 */
export const MAX_DRIVES = 16;

/**
 * Arguments for the drives, the first one being /dev/vda. A full disk of the host is reported to the guest as an I/O
 * error (`werror=report`): QEMU's default would stop the VM, and nobody would start it again.
 */
export function driveArguments(drives: readonly VmDrive[]): string[] {
  return drives.flatMap((drive, index) => {
    const node = `drive${index}`;
    const device = {
      driver: 'virtio-blk-device',
      drive: node,
      serial: drive.name,
      werror: 'report',
      rerror: 'report',
    };
    return ['-blockdev', JSON.stringify(blockNode(node, drive.source)), '-device', JSON.stringify(device)];
  });
}

/** The block node of a source, as BlockdevOptions of QEMU's QMP reference. */
export function blockNode(name: string, source: DriveSource): Readonly<Record<string, unknown>> {
  const common = {
    'node-name': name,
    'read-only': source.readOnly,
    ...(source.readOnly ? {} : { discard: 'unmap', 'detect-zeroes': 'unmap' }),
  };
  switch (source.kind) {
    case 'file':
      // The format is always named: probing would let a guest turn its raw disk into a qcow2 with a backing file.
      return { driver: source.format, ...common, file: { driver: 'file', filename: source.path } };
    case 'device':
      return { driver: 'raw', ...common, file: { driver: 'host_device', filename: source.path } };
    case 'nbd':
      return {
        driver: 'nbd',
        ...common,
        server: { type: 'unix', path: source.socket },
        export: source.export,
        'reconnect-delay': NBD_RECONNECT_SECONDS,
      };
  }
}
