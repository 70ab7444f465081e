import { readdir, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { downloadPackages, queryPackages } from '@aenv/platform/debian/download.ts';
import { hostCodename } from '@aenv/platform/debian/host.ts';
import { unpackDeb } from '@aenv/platform/debian/unpack.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { withLibraries } from './library-closure.ts';
import { compilePython } from './python.ts';

export interface DebTreeOptions {
  /** names of packages of the host's Debian release */
  readonly packages: readonly string[];
  /** packages that the image below has already */
  readonly installed: ReadonlySet<string>;
  /** folder for apt's lists and archives */
  readonly aptDir: string;
  /** seconds; no file is younger */
  readonly epoch: number;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

const PYTHON_FOLDER = 'usr/lib/python3/dist-packages';
/** Of no use in an image: documentation, tests, what links programs. */
const LEFT_OUT = ['usr/share/doc-base', 'usr/share/lintian', 'usr/share/man', 'usr/share/bug', 'usr/share/info'];
/** Debian's alternatives, which scripts of the packages would choose. */
const ALTERNATIVES = [
  ['libblas.so.3', 'blas/libblas.so.3'],
  ['liblapack.so.3', 'lapack/liblapack.so.3'],
] as const;

/**
 * Unpacks Debian packages with the libraries that they need into a folder. Nothing is installed: no script runs, and
 * the package manager of the image knows nothing of them, so that it may install the same packages later. Python modules
 * are compiled by the host's Python, which is that of the same release. Needs root, for owners.
 * @throws AenvError `host_command_failed`, `host_unsupported`
 */
export async function layDebs(root: string, options: DebTreeOptions): Promise<void> {
  const { log, signal, epoch } = options;
  const suite = await hostCodename();
  const cancel = signal === undefined ? {} : { signal };
  const debian = { workDir: options.aptDir, log, ...cancel };
  const packages = await withLibraries(options.packages, options.installed, (names) =>
    queryPackages({ suite, packages: names }, debian),
  );
  for (const { path } of await downloadPackages({ suite, packages, withDependencies: false }, debian)) {
    await unpackDeb(path, root, signal);
  }
  for (const path of LEFT_OUT) await rm(join(root, path), { recursive: true, force: true });
  await keepLicences(join(root, 'usr/share/doc'));
  await linkAlternatives(join(root, 'usr/lib'));
  await removeTests(join(root, PYTHON_FOLDER));
  log.info('compiling Python modules');
  await compilePython(root, join(root, PYTHON_FOLDER), epoch, signal);
}

async function keepLicences(doc: string): Promise<void> {
  for (const file of await readdir(doc, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (!file.isDirectory() && file.name !== 'copyright') await rm(join(file.parentPath, file.name), { force: true });
  }
}

async function linkAlternatives(lib: string): Promise<void> {
  for (const triplet of await readdir(lib).catch(() => [])) {
    for (const [name, target] of ALTERNATIVES) {
      const exists = await stat(join(lib, triplet, target)).catch(() => undefined);
      if (exists !== undefined) await symlink(target, join(lib, triplet, name));
    }
  }
}

/** Tests of packages are a good part of them. */
async function removeTests(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory() && entry.name === 'tests') await rm(path, { recursive: true });
    else if (entry.isDirectory()) await removeTests(path);
  }
}
