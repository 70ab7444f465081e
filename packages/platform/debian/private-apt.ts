import { createHash } from 'node:crypto';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { writeDurable } from '../files/durable.ts';
import { type RunResult, run } from '../process/run.ts';
import type { DebianOptions, Suite } from './contract.ts';
import {
  type DebianRepository,
  debianEnvironment,
  debianRepositories,
  hostCodename,
  hostSourceEntries,
  withHostOptions,
} from './host.ts';
import { retryWhileLocked } from './locks.ts';
import { formatSources } from './sources.ts';

const LISTS_FRESH_MS = 60 * 60 * 1000;
const NETWORK_TIMEOUT_MS = 15 * 60 * 1000;

/**
 * apt over the host's Debian mirrors plus one more suite of them, with lists and caches of its own. Of the host it reads
 * the configuration (proxies, credentials, keyrings) and dpkg's status; it changes nothing of it.
 */
export class PrivateApt {
  readonly #suite: Suite;
  readonly #options: DebianOptions;
  readonly #folder: string;
  /** arguments that every call starts with */
  readonly #common: readonly string[];

  private constructor(suite: Suite, options: DebianOptions, folder: string, common: readonly string[]) {
    this.#suite = suite;
    this.#options = options;
    this.#folder = folder;
    this.#common = common;
  }

  /** @throws AenvError `host_unsupported` when no apt source of the host is Debian's */
  static async open(suite: Suite, options: DebianOptions): Promise<PrivateApt> {
    const codename = await hostCodename();
    const text = await suiteSources(suite, codename, options);
    const name = `${suite.replaceAll(/[^\w.-]/g, '_')}-${createHash('sha256').update(text).digest('hex').slice(0, 12)}`;
    const folder = join(options.workDir, 'apt', name);
    await mkdir(join(folder, 'sources'), { recursive: true });
    await writeDurable(join(folder, 'sources', 'suite.sources'), text);
    const config = await writeConfig(folder, join(folder, 'sources'));
    // Among the host's own suites the newest version wins, so that security updates are not passed over.
    const release = suite === codename ? [] : ['-o', `APT::Default-Release=${suite}`];
    return new PrivateApt(suite, options, folder, ['-c', config, ...release]);
  }

  /** Fetches the lists anew when they are older than an hour, or in any case with `force`. */
  async update(force = false): Promise<void> {
    const stamp = join(this.#folder, 'updated');
    const age = Date.now() - (await stat(stamp).catch(() => ({ mtimeMs: 0 }))).mtimeMs;
    if (!force && age < LISTS_FRESH_MS) return;
    this.#options.log.info('reading package lists', { suite: this.#suite });
    await updateLists(join(this.#folder, 'apt.conf'), this.#options.signal);
    await writeFile(stamp, '');
  }

  get(args: readonly string[], cwd?: string): Promise<RunResult> {
    return this.#run('apt-get', args, cwd);
  }

  cache(args: readonly string[]): Promise<RunResult> {
    return this.#run('apt-cache', args);
  }

  #run(program: string, args: readonly string[], cwd?: string): Promise<RunResult> {
    const { signal } = this.#options;
    return run([program, ...this.#common, ...args], {
      env: debianEnvironment(),
      timeoutMs: NETWORK_TIMEOUT_MS,
      maxOutput: 64 * 1024 * 1024,
      ...(cwd === undefined ? {} : { cwd }),
      ...(signal === undefined ? {} : { signal }),
    });
  }
}

/** The host's Debian sources, and the suite on the mirror of the host's own release. */
async function suiteSources(suite: Suite, codename: string, options: DebianOptions): Promise<string> {
  const entries = await hostSourceEntries(options.signal);
  const repositories = await knownRepositories(options);
  const main = repositories.find((one) => one.label === 'Debian' && one.codename === codename);
  if (main === undefined) {
    throw new AenvError('host_unsupported', `none of this host's apt sources is Debian ${codename}`, {
      remediation: 'Add a Debian mirror to the sources of apt, then run `apt-get update`.',
    });
  }
  const wanted = repositories.some((one) => one.suite === suite || one.codename === suite)
    ? repositories
    : [...repositories, { ...main, suite, components: ['main'] }];
  return formatSources(wanted.map((one) => withHostOptions(one, entries)));
}

/** From the host's lists; where it has none (a fresh container image, for example), from lists fetched privately. */
async function knownRepositories(options: DebianOptions): Promise<readonly DebianRepository[]> {
  const known = await debianRepositories([], options.signal);
  if (known.length > 0) return known;
  const folder = join(options.workDir, 'apt', 'host');
  await mkdir(folder, { recursive: true });
  const config = await writeConfig(folder);
  await updateLists(config, options.signal);
  return debianRepositories(['-c', config], options.signal);
}

/** apt.conf(5) is read last when given with -c, so this wins over the host's files. */
async function writeConfig(folder: string, sources?: string): Promise<string> {
  await mkdir(join(folder, 'lists', 'partial'), { recursive: true });
  await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true });
  const lines = [
    // hooks of the host would act on the host's own folders
    '#clear APT::Update::Pre-Invoke;',
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
    '#clear DPkg::Pre-Invoke;',
    '#clear DPkg::Post-Invoke;',
    `Dir::State::lists "${folder}/lists";`,
    `Dir::Cache "${folder}/cache";`,
    `Dir::Cache::archives "${folder}/cache/archives";`,
    'Dir::Cache::pkgcache "pkgcache.bin";',
    'Dir::Cache::srcpkgcache "srcpkgcache.bin";',
    'Dir::Etc::preferences "/dev/null";',
    'Dir::Etc::preferencesparts "/dev/null";',
    ...(sources === undefined ? [] : ['Dir::Etc::sourcelist "/dev/null";', `Dir::Etc::sourceparts "${sources}";`]),
    'APT::Install-Recommends "false";',
    'APT::Install-Suggests "false";',
    'Acquire::Languages "none";',
    'Acquire::Retries "3";',
    // a simulation and a download need no lock of the host's dpkg, which another program may hold
    'Debug::NoLocking "true";',
  ];
  const path = join(folder, 'apt.conf');
  await writeDurable(path, `${lines.join('\n')}\n`);
  return path;
}

async function updateLists(config: string, signal?: AbortSignal): Promise<void> {
  const argv = ['apt-get', '-c', config, '-q', '-o', 'Debug::NoLocking=false', 'update'] as const;
  await retryWhileLocked(
    () =>
      run(argv, {
        env: debianEnvironment(),
        timeoutMs: NETWORK_TIMEOUT_MS,
        ...(signal === undefined ? {} : { signal }),
      }),
    signal,
  );
}
