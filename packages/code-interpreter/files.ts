import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { INTERPRETER_FOLDER } from './contract.ts';

/** A file of the guest. */
export interface InterpreterFile {
  /** absolute, in the guest */
  readonly path: string;
  readonly mode: number;
  readonly content: Buffer;
}

const SOURCES = join(import.meta.dirname, 'guest');
/** Debian's pip installs nothing beside its package manager's modules unless it is told to. */
const PIP_CONF =
  '[global]\nbreak-system-packages = true\nroot-user-action = ignore\ndisable-pip-version-check = true\n';

/** Debian's default is a window system that is not there; what scripts plot goes into files. */
const MATPLOTLIBRC = 'backend: Agg\n';

/** Everything that the interpreter brings into a guest, in a fixed order. */
export async function interpreterFiles(): Promise<readonly InterpreterFile[]> {
  const entries = await readdir(SOURCES, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && /^(start|.*\.(py|mjs))$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const files = paths.map(async (path) => ({
    path: join(INTERPRETER_FOLDER, relative(SOURCES, path)),
    mode: path.endsWith('/start') ? 0o755 : 0o644,
    content: await readFile(path),
  }));
  return [
    ...(await Promise.all(files)),
    { path: '/etc/pip.conf', mode: 0o644, content: Buffer.from(PIP_CONF) },
    { path: '/etc/matplotlibrc', mode: 0o644, content: Buffer.from(MATPLOTLIBRC) },
  ];
}
