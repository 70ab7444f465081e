import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { run } from '../process/run.ts';
import type { DebianOptions } from './contract.ts';
import { debianEnvironment } from './host.ts';
import { LOCK_WAIT_SECONDS, retryWhileLocked } from './locks.ts';

const LISTS_STALE_MS = 24 * 60 * 60 * 1000;
const STATUS_FORMAT = `${['db:Status-Abbrev', 'Package', 'Version'].map((field) => `\${${field}}`).join('|')}\n`;
const INSTALL_TIMEOUT_MS = 20 * 60 * 1000;

/**
 * Versions of packages as dpkg has them fully installed on this host, by name; names that are not installed are absent.
 * @throws AenvError `host_command_missing` when the host has no dpkg
 */
export async function installedVersions(
  names: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  if (names.length === 0) return new Map();
  const { stdout } = await run(['dpkg-query', '--show', '--showformat', STATUS_FORMAT, ...names], {
    env: debianEnvironment(),
    okCodes: [0, 1],
    ...(signal === undefined ? {} : { signal }),
  });
  return parseInstalled(stdout);
}

/** Lines `ii |NAME|VERSION`; other states (removed, half-configured) do not count as installed. */
export function parseInstalled(text: string): ReadonlyMap<string, string> {
  const versions = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [state = '', name = '', version = ''] = line.split('|');
    if (state.trim() === 'ii' && name !== '') versions.set(name, version);
  }
  return versions;
}

/** Those of the names that are not installed, in their order. */
export async function missingPackages(names: readonly string[], signal?: AbortSignal): Promise<string[]> {
  const installed = await installedVersions(names, signal);
  return names.filter((name) => !installed.has(name));
}

/**
 * Installs what is missing of these packages, without recommended ones; asks nothing and keeps changed configuration
 * files. Waits up to three minutes for another apt or dpkg. Needs root.
 * @throws AenvError `host_command_failed` with apt's last lines
 */
export async function installPackages(
  names: readonly string[],
  options: Pick<DebianOptions, 'log' | 'signal'>,
): Promise<void> {
  const missing = await missingPackages(names, options.signal);
  if (missing.length === 0) return;
  if (await listsAreStale()) await updateHostLists(options);
  options.log.info('installing packages', { packages: missing });
  try {
    await install(missing, options.signal);
  } catch (error) {
    // Lists may name versions that the mirror has dropped: once more with fresh ones.
    if (!(error instanceof AenvError) || !/Unable to locate|Unable to fetch|404/.test(error.message)) throw error;
    await updateHostLists(options);
    await install(missing, options.signal);
  }
}

async function install(names: readonly string[], signal?: AbortSignal): Promise<void> {
  const argv = [
    'apt-get',
    '-q',
    '-y',
    '--no-install-recommends',
    '-o',
    `DPkg::Lock::Timeout=${LOCK_WAIT_SECONDS}`,
    '-o',
    'Dpkg::Options::=--force-confdef',
    '-o',
    'Dpkg::Options::=--force-confold',
    'install',
    ...names,
  ] as const;
  await retryWhileLocked(
    () =>
      run(argv, {
        env: debianEnvironment(),
        timeoutMs: INSTALL_TIMEOUT_MS,
        ...(signal === undefined ? {} : { signal }),
      }),
    signal,
  );
}

async function updateHostLists(options: Pick<DebianOptions, 'log' | 'signal'>): Promise<void> {
  options.log.info('reading package lists');
  const { signal } = options;
  await retryWhileLocked(
    () =>
      run(['apt-get', '-q', 'update'], {
        env: debianEnvironment(),
        timeoutMs: INSTALL_TIMEOUT_MS,
        ...(signal === undefined ? {} : { signal }),
      }),
    signal,
  );
}

/** Whether apt has no package lists, or none that was fetched or confirmed within a day. */
async function listsAreStale(): Promise<boolean> {
  const { stdout } = await run(['apt-config', 'shell', 'LISTS', 'Dir::State::lists/d'], { env: debianEnvironment() });
  const folder = /^LISTS='(.*)'$/m.exec(stdout)?.[1];
  if (folder === undefined) return true;
  const names = (await readdir(folder).catch(() => [])).filter((name) => /Release$|^partial$/.test(name));
  if (!names.some((name) => name.endsWith('Release'))) return true;
  // `partial` is touched by every update, also when all lists were current.
  const times = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).mtimeMs));
  return Date.now() - Math.max(...times) > LISTS_STALE_MS;
}
