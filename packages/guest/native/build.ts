import { readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@aenv/platform/process/run.ts';
import type { AssetCache } from '../cache/asset-cache.ts';
import { digestInputs, sourceInputs } from '../cache/inputs.ts';
import type { GuestFile } from '../contract.ts';

const FILE = 'aenv-guest';
const FLAGS = ['-static', '-O2', '-std=c11', '-Wall', '-Wextra', '-Werror', '-fstack-protector-strong'];
const LINK_FLAGS = ['-Wl,--build-id=none', '-Wl,-z,noexecstack', '-s'];

export interface NativeOptions {
  readonly cache: AssetCache;
  /** versions of compiler, C library and kernel headers, as inputs */
  readonly toolchain: string;
  readonly signal?: AbortSignal | undefined;
}

/** Compiles the native program, a static ELF of this machine's architecture. Runs on the host as well as in the guest. */
export async function buildNative(options: NativeOptions): Promise<GuestFile> {
  const folder = import.meta.dirname;
  const flags = [...FLAGS, ...LINK_FLAGS];
  const digest = digestInputs({
    ...(await sourceInputs(folder)),
    flags: flags.join(' '),
    toolchain: options.toolchain,
    arch: process.arch,
  });
  const entry = await options.cache.get({
    kind: 'native',
    digest,
    files: { [FILE]: 0o755 },
    async build(folderOfEntry, scratch) {
      const common = { cwd: folder, ...(options.signal === undefined ? {} : { signal: options.signal }) };
      const multiarch = (await run(['gcc', '-print-multiarch'], common)).stdout.trim();
      // musl has no kernel headers of its own. Those of the system are taken through links of exactly these three
      // folders: with /usr/include itself in the search path, headers of the other C library would be found as well.
      await symlink('/usr/include/linux', join(scratch, 'linux'));
      await symlink('/usr/include/asm-generic', join(scratch, 'asm-generic'));
      await symlink(join('/usr/include', multiarch, 'asm'), join(scratch, 'asm'));
      const files = (await readdir(folder)).filter((name) => name.endsWith('.c')).sort();
      await run(['musl-gcc', ...flags, '-isystem', scratch, '-o', join(folderOfEntry, FILE), ...files], common);
    },
  });
  return { path: join(entry, FILE), digest };
}
