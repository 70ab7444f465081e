import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { QemuInstall } from './qemu-install.ts';
import { askVersion } from './version.ts';

/** The host's own QEMU, or undefined when it has none, or one that does not run. */
export async function findSystemQemu(searchPath: string, signal?: AbortSignal): Promise<QemuInstall | undefined> {
  const system = await findProgram('qemu-system-x86_64', searchPath);
  if (system === undefined) return undefined;
  try {
    const version = await askVersion(system, {}, signal);
    return version === undefined ? undefined : { version, system, env: {} };
  } catch (error) {
    if (error instanceof AenvError) return undefined;
    throw error;
  }
}

async function findProgram(name: string, searchPath: string): Promise<string | undefined> {
  for (const folder of searchPath.split(':').filter((entry) => entry.startsWith('/'))) {
    const path = join(folder, name);
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // not in this folder
    }
  }
  return undefined;
}
