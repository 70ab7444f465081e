import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { VmShape } from '../contract/micro-vm.ts';
import { MAX_DRIVES } from './drives.ts';

/** sun_path of unix(7) has 108 bytes, the last of them NUL. */
const MAX_SOCKET_PATH = 107;

/** The control socket of a VM. */
export function qmpSocketPath(runDir: string): string {
  return join(runDir, 'qmp.sock');
}

/** @throws AenvError `boot_failed` */
export function checkKernelArgs(kernelArgs: string): void {
  if (/[\n\0]/.test(kernelArgs)) throw new AenvError('boot_failed', 'kernel arguments of more than one line');
}

/**
 * Refuses what QEMU would misread or fail on with a message that helps nobody.
 * @throws AenvError `boot_failed`; `config_invalid` when the run folder's path is too long for a unix socket
 */
export function checkShape(spec: VmShape): void {
  const refuse = (why: string) => {
    throw new AenvError('boot_failed', `VM ${spec.incarnation}: ${why}`);
  };
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(spec.incarnation)) refuse('its name has characters that QEMU misreads');
  if (!Number.isInteger(spec.cpuCount) || spec.cpuCount < 1) refuse(`it cannot have ${spec.cpuCount} CPUs`);
  if (!Number.isInteger(spec.memoryMb) || spec.memoryMb < 64) refuse(`it cannot have ${spec.memoryMb} MiB of memory`);
  if (!/^[A-Za-z0-9_.-]{1,15}$/.test(spec.network.tap)) refuse(`'${spec.network.tap}' is not the name of a link`);
  if (!Number.isInteger(spec.network.uid) || spec.network.uid < 1) refuse('it must not run as root');
  if (spec.drives.length > MAX_DRIVES)
    refuse(`it has ${spec.drives.length} drives, at most ${MAX_DRIVES} are possible`);
  const names = new Set(spec.drives.map((drive) => drive.name));
  if (names.size !== spec.drives.length) refuse('two of its drives have the same name');
  for (const name of names) {
    // virtio-blk cuts a serial off after 20 bytes.
    if (!/^[A-Za-z0-9_.-]{1,20}$/.test(name)) refuse(`'${name}' is not a name for a drive`);
  }
  const socket = qmpSocketPath(spec.runDir);
  if (Buffer.byteLength(socket) > MAX_SOCKET_PATH) {
    throw new AenvError(
      'config_invalid',
      `the path ${socket} is too long for a unix socket (at most ${MAX_SOCKET_PATH} bytes)`,
      { remediation: 'Choose a shorter runtime folder with AENV_RUNTIME.' },
    );
  }
}
