import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { run } from '../process/run.ts';
import { parseSources, type SourceEntry } from './sources.ts';

/** The environment of apt's and dpkg's programs: no questions, and output in the form that is parsed here. */
export function debianEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_MODE: 'l' };
}

/**
 * The code name of the host's Debian release, for example `bookworm`.
 * @throws AenvError `host_unsupported` when the host is not Debian
 */
export async function hostCodename(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const field = (name: string) => new RegExp(`^${name}="?([^"\n]*)"?$`, 'm').exec(text)?.[1];
  const codename = field('VERSION_CODENAME');
  if (field('ID') === 'debian' && codename !== undefined && codename !== '') return codename;
  throw new AenvError('host_unsupported', `this host is not a Debian release: ${field('PRETTY_NAME') ?? 'unknown'}`, {
    remediation: 'Run aenv on Debian 12 or newer.',
  });
}

/** A repository of the host that apt knows as Debian's own. */
export interface DebianRepository {
  readonly uri: string;
  readonly suite: string;
  readonly components: readonly string[];
  /** `Debian`, `Debian-Security`, `Debian Backports` */
  readonly label: string;
  readonly codename: string;
}

const INDEX_FORMAT = '$(ORIGIN)|$(LABEL)|$(CODENAME)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)';

/**
 * Debian's repositories among the host's, as apt itself tells them apart from others: by the Origin of their signed
 * Release files. Empty when apt has no lists yet.
 * @param config further arguments of apt-get, for other lists than the host's
 */
export async function debianRepositories(
  config: readonly string[],
  signal?: AbortSignal,
): Promise<readonly DebianRepository[]> {
  const { stdout } = await run(
    ['apt-get', ...config, 'indextargets', '--format', INDEX_FORMAT, 'Created-By: Packages', 'Target-Of: deb'],
    { env: debianEnvironment(), ...(signal === undefined ? {} : { signal }) },
  );
  return parseIndexTargets(stdout);
}

/** Lines of `INDEX_FORMAT` joined by repository. */
export function parseIndexTargets(text: string): DebianRepository[] {
  const found = new Map<string, DebianRepository>();
  for (const line of text.split('\n')) {
    const [origin, label = '', codename = '', suite = '', component = '', uri = ''] = line.split('|');
    if (origin !== 'Debian' || uri === '') continue;
    const known = found.get(`${uri} ${suite}`);
    const components = [...new Set([...(known?.components ?? []), component])];
    found.set(`${uri} ${suite}`, { uri, suite, components, label, codename });
  }
  return [...found.values()];
}

/** All entries of the host's source lists, in the files that its apt reads. */
export async function hostSourceEntries(signal?: AbortSignal): Promise<SourceEntry[]> {
  const options = { env: debianEnvironment(), ...(signal === undefined ? {} : { signal }) };
  const { stdout } = await run(
    ['apt-config', 'shell', 'MAIN', 'Dir::Etc::sourcelist/f', 'PARTS', 'Dir::Etc::sourceparts/d'],
    options,
  );
  const main = /^MAIN='(.*)'$/m.exec(stdout)?.[1];
  const parts = /^PARTS='(.*)'$/m.exec(stdout)?.[1];
  const names = parts === undefined ? [] : await readdir(parts).catch(() => []);
  const files = [
    ...(main === undefined ? [] : [main]),
    ...names
      .filter((name) => /^[\w.-]+\.(list|sources)$/.test(name))
      .sort()
      .map((name) => join(parts ?? '', name)),
  ];
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
  return files.flatMap((file, index) => parseSources(file, texts[index] ?? ''));
}

/** Gives a repository the options (keyring above all) of the host's entry that it comes from. */
export function withHostOptions(repository: DebianRepository, entries: readonly SourceEntry[]): SourceEntry {
  const slashed = (uri: string) => (uri.endsWith('/') ? uri : `${uri}/`);
  const sameUri = entries.filter((entry) => entry.uris.some((uri) => slashed(uri) === slashed(repository.uri)));
  const entry = sameUri.find(({ suites }) => suites.includes(repository.suite)) ?? sameUri[0];
  return {
    uris: [repository.uri],
    suites: [repository.suite],
    components: repository.components,
    fields: entry?.fields ?? new Map(),
  };
}
