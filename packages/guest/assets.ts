import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installedVersions } from '@aenv/platform/debian/packages.ts';
import { AssetCache } from './cache/asset-cache.ts';
import { sourceInputs } from './cache/inputs.ts';
import type { BuildOptions, GuestAssets } from './contract.ts';
import { buildInitramfs } from './initramfs/build.ts';
import { buildKernel } from './kernel/build.ts';
import { buildNative } from './native/build.ts';
import { buildTools, type EnvdProgram } from './tools/build.ts';

const COMPILER_PACKAGES = ['gcc', 'binutils', 'musl-tools', 'musl-dev', 'linux-libc-dev'];
const DRIVE_PACKAGES = ['erofs-utils', 'libc6', 'libstdc++6', 'libgcc-s1'];

/** Debian packages of the host that the build needs; their versions are among its inputs. */
export const GUEST_BUILD_PACKAGES: readonly string[] = [...COMPILER_PACKAGES, ...DRIVE_PACKAGES];

const PACKAGES = join(import.meta.dirname, '..');

/**
 * All that a VM boots besides its root file system. What is in the cache and made of the same inputs is used as it is,
 * everything else is built: the first time that takes about half a minute and fetches the kernel from the Debian mirror
 * of this host. Any number of processes may call this at once.
 * @throws AenvError `host_command_missing` without `GUEST_BUILD_PACKAGES`, `asset_failed`, `host_unsupported`
 */
export async function ensureGuestAssets(options: BuildOptions): Promise<GuestAssets> {
  const dir = join(options.assetsDir, 'guest');
  const cache = new AssetCache(dir);
  const { signal } = options;
  const versions = await installedVersions(GUEST_BUILD_PACKAGES, signal);
  const describe = (names: readonly string[]) => names.map((name) => `${name} ${versions.get(name)}`).join('\n');
  const debian = { workDir: join(dir, 'debian'), log: options.log, ...(signal === undefined ? {} : { signal }) };

  const native = await buildNative({ cache, toolchain: describe(COMPILER_PACKAGES), signal });
  const [kernel, tools] = await both(
    buildKernel(cache, dir, debian),
    buildTools({ cache, native, envd: await envdProgram(), packages: describe(DRIVE_PACKAGES), signal }),
  );
  const initramfs = await buildInitramfs({ cache, native, kernel });
  return {
    kernel: { path: kernel.vmlinux, digest: kernel.digest, version: kernel.version },
    initramfs,
    tools,
    native,
  };
}

/** Both results; when one fails, only after the other has ended too, so that no work goes on behind the caller. */
async function both<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}

/** envd's files, and everything that they are made of: its sources, the contracts, the versions of packages. */
async function envdProgram(): Promise<EnvdProgram> {
  return {
    program: join(PACKAGES, 'envd/main.ts'),
    start: join(PACKAGES, 'envd/start/start.ts'),
    compile: join(PACKAGES, 'envd/start/compile.ts'),
    inputs: {
      ...(await sourceInputs(join(PACKAGES, 'envd'), join(PACKAGES, 'contracts'))),
      lock: await readFile(join(PACKAGES, '../package-lock.json')),
    },
  };
}
