import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { GUEST_LAYOUT } from '@aenv/contracts/guest/layout.ts';
import { run } from '@aenv/platform/process/run.ts';
import type { AssetCache } from '../cache/asset-cache.ts';
import { digestInputs, type Inputs, sourceInputs } from '../cache/inputs.ts';
import type { GuestFile } from '../contract.ts';
import { bundle } from './bundle.ts';
import { makeCode } from './code.ts';
import { loaderWithoutPreload, sharedLibraries } from './libraries.ts';
import { RUNTIME, runtimeExecutable } from './runtime.ts';

const FILE = 'tools.erofs';
const START = 'start.cjs';
const MKFS_TIMEOUT_MS = 5 * 60 * 1000;

/** What of envd is needed to build the drive. */
export interface EnvdProgram {
  /** file that exports the program */
  readonly program: string;
  /** file that starts it in a guest */
  readonly start: string;
  /** file that makes the engine's code of the program's bundle, on this host */
  readonly compile: string;
  /** all sources of these as inputs */
  readonly inputs: Inputs;
}

export interface ToolsOptions {
  readonly cache: AssetCache;
  readonly native: GuestFile;
  readonly envd: EnvdProgram;
  /** versions of the C and C++ libraries and of mkfs.erofs, as inputs */
  readonly packages: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The read-only drive with everything of the platform that a guest runs: runtime, its own loader and libraries, the
 * native program and envd, so that nothing of the root file system is needed. Uncompressed EROFS: its pages are read
 * straight from the host's page cache, where all VMs share them.
 */
export async function buildTools(options: ToolsOptions): Promise<GuestFile & { readonly uuid: string }> {
  const executable = runtimeExecutable(RUNTIME);
  const digest = digestInputs({
    ...options.envd.inputs,
    ...(await sourceInputs(import.meta.dirname)),
    native: options.native.digest,
    runtime: JSON.stringify(RUNTIME),
    runtimePackage: await readFile(join(executable, '../../package.json')),
    packages: options.packages,
  });
  const uuid = uuidOf(digest);
  const entry = await options.cache.get({
    kind: 'tools',
    digest,
    files: { [FILE]: 0o644 },
    async build(folder, scratch) {
      const common = {
        timeoutMs: MKFS_TIMEOUT_MS,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      };
      await lay(scratch, executable, options);
      await run(
        ['mkfs.erofs', '--quiet', '-T', '0', '-U', uuid, '--all-root', '-x', '-1', join(folder, FILE), scratch],
        common,
      );
    },
  });
  return { path: join(entry, FILE), digest, uuid };
}

/** Puts the drive's files into a folder. */
async function lay(root: string, executable: string, options: ToolsOptions): Promise<void> {
  const at = (...parts: string[]) => join(root, ...parts);
  await mkdir(at('bin'));
  await mkdir(at('lib'));
  const runtime = join('bin', basename(RUNTIME.executable));
  const loader = join('lib', basename(RUNTIME.loader));
  await run(['strip', '--strip-all', '-o', at(runtime), executable], { timeoutMs: MKFS_TIMEOUT_MS });
  await copyFile(options.native.path, at('bin', basename(GUEST_LAYOUT.native)));
  await writeFile(at(loader), await loaderWithoutPreload(RUNTIME.loader), { mode: 0o755 });
  for (const [name, path] of await sharedLibraries(RUNTIME.loader, executable, options.signal)) {
    await copyFile(path, at('lib', name));
  }
  const { envd } = options;
  const program = at(basename(GUEST_LAYOUT.program));
  await bundle(envd.program, RUNTIME.bundleTarget, program);
  await bundle(envd.start, RUNTIME.bundleTarget, at(START));
  const engine = [executable, ...RUNTIME.engineFlags] as const;
  await makeCode(engine, envd.compile, [program, at(basename(GUEST_LAYOUT.programCode))], options.signal);
  await writeFile(at('openssl.cnf'), '');
  const inGuest = (path: string) => `${GUEST_LAYOUT.toolsDir}/${path}`;
  const argv = [
    inGuest(loader),
    '--inhibit-cache',
    '--library-path',
    inGuest('lib'),
    inGuest(runtime),
    ...RUNTIME.options,
    ...RUNTIME.engineFlags,
    inGuest(START),
  ];
  await writeFile(at(basename(GUEST_LAYOUT.envdArgv)), argv.map((line) => `${line}\n`).join(''));
}

/** A UUID made of the digest (RFC 9562, version 8): the guest knows its drive by it. */
export function uuidOf(digest: string): string {
  const bytes = Buffer.from(digest.slice(0, 32), 'hex');
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x80, 6);
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
