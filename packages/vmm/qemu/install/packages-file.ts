import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The package that holds the program. */
export const QEMU_PACKAGE = 'qemu-system-x86';
/** File of a side-by-side install: suite, names and versions of the packages that it was unpacked from. */
export const PACKAGES = 'packages.json';

/**
 * The version of a side-by-side install, from what is written in it.
 * @returns `MAJOR.MINOR.MICRO`, undefined for an install that is not whole
 */
export async function versionOfInstall(folder: string): Promise<string | undefined> {
  let install: unknown;
  try {
    install = JSON.parse(await readFile(join(folder, PACKAGES), 'utf8'));
  } catch {
    return undefined;
  }
  // An epoch may come before it, and a revision of Debian behind it (deb-version(7)).
  return /^(?:\d+:)?(\d+\.\d+\.\d+)/.exec(versionIn(install) ?? '')?.[1];
}

/** Of the package that holds the program, as Debian writes it. */
function versionIn(install: unknown): string | undefined {
  if (!isRecord(install) || !Array.isArray(install.packages)) return undefined;
  const found = install.packages.find((each) => isRecord(each) && each.name === QEMU_PACKAGE);
  return isRecord(found) && typeof found.version === 'string' ? found.version : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
