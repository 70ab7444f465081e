import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { GUEST_LAYOUT } from '@aenv/contracts/guest/layout.ts';

/** The JavaScript engine that envd runs on, as an npm package with one executable in it. */
export interface Runtime {
  readonly packageName: string;
  /** executable inside the package */
  readonly executable: string;
  /** the dynamic loader that the executable names, on the host */
  readonly loader: string;
  /** target that the bundler compiles for */
  readonly bundleTarget: string;
  /** options in front of the program's file */
  readonly options: readonly string[];
  /** the same for the engine, which takes no code that was made under others */
  readonly engineFlags: readonly string[];
}

const LOADERS: Readonly<Record<string, string>> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
};

/** The one place that says what envd runs on. */
export const RUNTIME: Runtime = {
  packageName: `node-linux-${process.arch}`,
  executable: 'bin/node',
  loader: LOADERS[process.arch] ?? '',
  bundleTarget: 'node24',
  // A configuration of the root file system's OpenSSL would be read, and could keep envd from starting.
  options: [`--openssl-config=${GUEST_LAYOUT.toolsDir}/openssl.cnf`],
  engineFlags: [
    // Eight quiet seconds after it has tidied its heap the engine does so once more, all of it. Every guest that continues
    // a machine which was captured in that time would do that for itself: half a second under emulation, and pages of its own.
    '--no-memory-reducer',
    // Compilers make the code faster that runs often, on threads of their own. In an emulated guest that has just been
    // continued, both they and what they make are translated on the processor on which somebody waits: a quarter of a
    // restore. The interpreter is shared by all functions. What envd does is done by the kernel and by compiled code; see
    // docs/performance.md.
    '--no-turbofan',
    '--no-maglev',
    '--no-sparkplug',
    // MiB. What passes through envd is let go of as often as this is full.
    '--max-semi-space-size=4',
  ],
};

/** Absolute path of the runtime's executable on the host. */
export function runtimeExecutable(runtime: Runtime): string {
  const require = createRequire(import.meta.url);
  return join(dirname(require.resolve(`${runtime.packageName}/package.json`)), runtime.executable);
}
