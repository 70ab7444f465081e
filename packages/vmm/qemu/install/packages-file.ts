import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The package that holds the program. */
export const QEMU_PACKAGE = 'qemu-system-x86';
/** File of a side-by-side install: suite, names and versions of the packages that it was unpacked from. */
export const PACKAGES = 'packages.json';

const VERSION = new RegExp(`"${QEMU_PACKAGE}",\\s*"version":\\s*"(?:\\d+:)?(\\d+\\.\\d+\\.\\d+)`);

/**
 * The version of a side-by-side install, from what is written in it.
 * @returns `MAJOR.MINOR.MICRO`, undefined for an install that is not whole
 */
export async function versionOfInstall(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, PACKAGES), 'utf8').catch(() => '');
  return VERSION.exec(text)?.[1];
}
