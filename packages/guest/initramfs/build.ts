import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AssetCache } from '../cache/asset-cache.ts';
import { digestInputs, sourceInputs } from '../cache/inputs.ts';
import type { GuestFile } from '../contract.ts';
import { writeCpio } from './cpio.ts';

const FILE = 'initramfs.cpio';

export interface InitramfsOptions {
  readonly cache: AssetCache;
  readonly native: GuestFile;
  /** archive of modules that belongs to the kernel, and that kernel's digest */
  readonly kernel: { readonly modules: string; readonly digest: string };
}

/**
 * The first file system of a guest: the native program as `/init`, the modules, and the folders that init mounts on.
 * Uncompressed, since an emulated processor takes longer to unpack it than the host to read it. The kernel takes
 * several archives one after another as one.
 */
export async function buildInitramfs(options: InitramfsOptions): Promise<GuestFile> {
  const { cache, native, kernel } = options;
  const digest = digestInputs({
    ...(await sourceInputs(import.meta.dirname)),
    native: native.digest,
    kernel: kernel.digest,
  });
  const entry = await cache.get({
    kind: 'initramfs',
    digest,
    files: { [FILE]: 0o644 },
    async build(folder) {
      const init = writeCpio([
        { kind: 'file', path: 'init', mode: 0o755, data: await readFile(native.path) },
        { kind: 'folder', path: 'proc', mode: 0o755 },
        { kind: 'folder', path: 'sys', mode: 0o755 },
        { kind: 'folder', path: 'root', mode: 0o755 },
        { kind: 'folder', path: 'dev', mode: 0o755 },
        // the kernel opens it for init, before anything is mounted
        { kind: 'character-device', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
      ]);
      await writeFile(join(folder, FILE), Buffer.concat([await readFile(kernel.modules), init]));
    },
  });
  return { path: join(entry, FILE), digest };
}
