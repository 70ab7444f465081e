import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { QemuInstall } from '../install/qemu-install.ts';
import { isAtLeast, SAFE_VERSION } from '../install/version.ts';

/** The file that a guest's memory begins as. */
export interface MemoryFile {
  readonly path: string;
  /**
   * How QEMU gets it: as a private mapping, of a file that it opens to read or, in old versions, to write; or not at all,
   * since memory of no file begins as zeros too.
   */
  readonly access: 'read' | 'write' | 'none';
  /** for a file of this VM alone: removed with the VM */
  readonly ownedByVm: boolean;
}

/**
 * What the memory of a VM that boots begins as: a sparse file of zeros, one for all VMs of a size, which captures name as
 * what they differ from. QEMU does not open it: anonymous memory is zeros as well, and comes in huge pages, with which an
 * emulated guest boots in four fifths of the time. Versions before 8.2 cannot capture; they go on mapping a file, each VM
 * its own, since they open it for writing, and a VMM that was taken over could write into the memory of all others.
 * @param folder on a disk, not on a tmpfs, where reading a hole would take memory
 */
export async function memoryFile(
  folder: string,
  spec: { readonly memoryMb: number; readonly incarnation: string; readonly network: { readonly uid: number } },
  install: QemuInstall,
): Promise<MemoryFile> {
  await mkdir(folder, { recursive: true, mode: 0o711 });
  const size = spec.memoryMb * 1024 * 1024;
  if (!isAtLeast(install.version, SAFE_VERSION)) {
    const path = join(folder, `${spec.incarnation}.mem`);
    await makeZeros(path, size, 0o600);
    await chown(path, spec.network.uid, spec.network.uid);
    return { path, access: 'write', ownedByVm: true };
  }
  const path = join(folder, `zero-${spec.memoryMb}.mem`);
  const existing = await stat(path).catch(() => undefined);
  if (existing?.size !== size) {
    const temporary = join(folder, `.${randomBytes(6).toString('hex')}.tmp`);
    try {
      await makeZeros(temporary, size, 0o444);
      await rename(temporary, path);
    } finally {
      await rm(temporary, { force: true });
    }
  }
  return { path, access: 'none', ownedByVm: false };
}

/**
 * The memory of a captured machine. It is shared with other VMs, so only a QEMU that opens it read-only gets it.
 * @throws AenvError `restore_failed`
 */
export async function baseAsMemory(
  path: string,
  shape: { readonly memoryMb: number },
  install: QemuInstall,
): Promise<MemoryFile> {
  if (!isAtLeast(install.version, SAFE_VERSION)) throw tooOld('restore_failed', install.version);
  const file = await stat(path).catch((cause) => {
    throw new AenvError('restore_failed', `the memory file ${path} is missing`, { cause });
  });
  if (file.size !== shape.memoryMb * 1024 * 1024) {
    throw new AenvError('restore_failed', `the memory file ${path} has ${file.size} bytes, not ${shape.memoryMb} MiB`);
  }
  return { path, access: 'read', ownedByVm: false };
}

/** Snapshots need memory that is mapped read-only. */
export function tooOld(code: 'restore_failed' | 'capture_failed', version: string): AenvError {
  return new AenvError(code, `QEMU ${version} cannot share memory safely, ${SAFE_VERSION} or newer is needed`, {
    remediation: 'Run `aenv doctor --fix`, which fetches a newer QEMU beside the one of this host.',
  });
}

async function makeZeros(path: string, size: number, mode: number): Promise<void> {
  await using file = await open(path, 'wx', mode);
  await file.truncate(size);
  await chmod(path, mode);
}
