import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AssetCache } from '@aenv/guest/cache/asset-cache.ts';
import { digestInputs } from '@aenv/guest/cache/inputs.ts';
import { writeCpio } from '@aenv/guest/initramfs/cpio.ts';
import { buildKernel } from '@aenv/guest/kernel/build.ts';
import { measureTscKhz } from '@aenv/guest/kernel-args.ts';
import { buildNative } from '@aenv/guest/native/build.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { run } from '@aenv/platform/process/run.ts';

export interface TestGuest {
  readonly kernel: { readonly path: string; readonly digest: string };
  readonly initramfs: string;
  /** the least that the kernel needs to come up under TCG on this machine */
  readonly kernelArgs: string;
}

const SOURCE = join(import.meta.dirname, 'guest.c');
const FILE = 'initramfs.cpio';

/** The kernel of all VMs with a small guest that behaves badly on demand, built once. */
export async function testGuest(assetsDir: string): Promise<TestGuest> {
  const folder = join(assetsDir, 'guest');
  const cache = new AssetCache(folder);
  const kernel = await buildKernel(cache, folder, { workDir: join(folder, 'debian'), log: silentLogger });
  const entry = await cache.get({
    kind: 'test-guest',
    digest: digestInputs({ source: await readFile(SOURCE), kernel: kernel.digest }),
    files: { [FILE]: 0o644 },
    async build(target, scratch) {
      const init = join(scratch, 'init');
      await run(['musl-gcc', '-static', '-O2', '-std=c11', '-Wall', '-Wextra', '-s', '-o', init, SOURCE]);
      const archive = writeCpio([
        { kind: 'file', path: 'init', mode: 0o755, data: await readFile(init) },
        ...(['proc', 'sys', 'dev'] as const).map((path) => ({ kind: 'folder', path, mode: 0o755 }) as const),
        { kind: 'character-device', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
      ]);
      await writeFile(join(target, FILE), Buffer.concat([await readFile(kernel.modules), archive]));
    },
  });
  const native = await buildNative({ cache, toolchain: 'of the tests' });
  const kernelArgs = `console=ttyS0 quiet loglevel=1 panic=-1 cryptomgr.notests=1 mitigations=off audit=0 tsc=reliable tsc_early_khz=${await measureTscKhz(native)}`;
  return { kernelArgs, kernel: { path: kernel.vmlinux, digest: kernel.digest }, initramfs: join(entry, FILE) };
}
