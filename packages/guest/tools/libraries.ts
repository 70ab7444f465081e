import { readFile } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { run } from '@aenv/platform/process/run.ts';

/** A file that the loader would read at the start of every program, named in the loader itself. */
const PRELOAD_LIST = '/etc/ld.so.preload';
/** A name of at most the same length on the tools drive, where no such file is. */
const NO_PRELOAD_LIST = '/run/aenv/tools/-';

/**
 * The shared libraries that an executable needs, directly and through others, as the loader itself finds them on this
 * host, its environment left out of account.
 * @returns file name, as programs ask for it, to path
 * @throws AenvError `asset_failed` when one is missing
 */
export async function sharedLibraries(
  loader: string,
  executable: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await run([loader, '--list', executable], {
    env: {},
    ...(signal === undefined ? {} : { signal }),
  });
  return parseLibraries(stdout);
}

/** Lines `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)`; the vdso and the loader have other forms. */
export function parseLibraries(text: string): ReadonlyMap<string, string> {
  const libraries = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, name, path] = /^\s*([\w.+-]+) => (.+?)(?: \(0x[0-9a-f]+\))?$/.exec(line) ?? [];
    if (name === undefined || path === undefined) continue;
    if (!path.startsWith('/')) throw new AenvError('asset_failed', `the library ${name} is missing: ${path}`);
    libraries.set(name, path);
  }
  return libraries;
}

/**
 * The loader, changed in one string so that `/etc/ld.so.preload` of a sandbox's root file system has no say in what
 * envd loads: glibc reads that file with no way to turn it off.
 */
export async function loaderWithoutPreload(path: string): Promise<Buffer> {
  const loader = await readFile(path);
  const at = loader.indexOf(`${PRELOAD_LIST}\0`);
  if (at < 0 || loader.indexOf(`${PRELOAD_LIST}\0`, at + 1) >= 0) {
    throw new AenvError('asset_failed', `${path} is not a loader of the GNU C library`);
  }
  loader.write(NO_PRELOAD_LIST.padEnd(PRELOAD_LIST.length, '\0'), at, 'latin1');
  return loader;
}
