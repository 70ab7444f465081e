import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DebFile, DebianOptions, DownloadRequest, PackageRecord, Suite } from './contract.ts';
import { PrivateApt } from './private-apt.ts';
import { parseStanzas } from './sources.ts';

/**
 * Fetches packages of a suite from the host's own Debian mirror into `workDir`; nothing is installed. apt verifies
 * signatures and hashes, files that are there already included. The named packages come in any case, their
 * dependencies only as far as the host lacks them.
 * @throws AenvError `host_unsupported` when apt has no Debian source; `host_command_failed` with apt's last lines
 */
export async function downloadPackages(request: DownloadRequest, options: DebianOptions): Promise<DebFile[]> {
  const apt = await PrivateApt.open(request.suite, options);
  await apt.update();
  try {
    return await fetchPackages(apt, request, options);
  } catch (error) {
    // A mirror drops a version when a newer one is published: once more with fresh lists.
    if (!(error instanceof AenvError) || error.code !== 'host_command_failed') throw error;
    options.log.debug('download failed, reading the lists anew', { error: error.message });
    await apt.update(true);
    return fetchPackages(apt, request, options);
  }
}

/**
 * What the suite has under these names, in their order; a name that it does not have is an error.
 * @throws AenvError `host_command_failed`
 */
export async function queryPackages(
  request: { readonly suite: Suite; readonly packages: readonly string[] },
  options: DebianOptions,
): Promise<PackageRecord[]> {
  const apt = await PrivateApt.open(request.suite, options);
  await apt.update();
  return showPackages(apt, request.packages);
}

async function fetchPackages(apt: PrivateApt, request: DownloadRequest, options: DebianOptions): Promise<DebFile[]> {
  const wanted = request.withDependencies
    ? parseSimulation(
        (
          await apt.get([
            '-qq',
            '-s',
            '-y',
            '--no-install-recommends',
            '--reinstall',
            '--allow-downgrades',
            '--allow-change-held-packages',
            'install',
            ...request.packages,
          ])
        ).stdout,
      )
    : await showPackages(apt, request.packages);
  const folder = join(options.workDir, 'debs');
  await mkdir(folder, { recursive: true });
  options.log.info('downloading packages', { suite: request.suite, packages: wanted.map(({ name }) => name) });
  await apt.get(['-q', 'download', ...wanted.map((one) => `${one.name}:${one.architecture}=${one.version}`)], folder);
  return Promise.all(
    wanted.map(async ({ name, version, architecture }) => {
      const path = join(folder, `${name}_${version.replaceAll(':', '%3a')}_${architecture}.deb`);
      await stat(path);
      return { name, version, path };
    }),
  );
}

async function showPackages(apt: PrivateApt, names: readonly string[]): Promise<PackageRecord[]> {
  const { stdout } = await apt.cache(['show', '--no-all-versions', ...names]);
  const records = parseRecords(stdout);
  return names.map((name) => {
    const record = records.find((one) => one.name === name);
    if (record !== undefined) return record;
    throw new AenvError('host_command_failed', `apt-cache: the package ${name} is not in this suite`);
  });
}

/** Stanzas of `apt-cache show`. */
export function parseRecords(text: string): PackageRecord[] {
  return parseStanzas(text).flatMap((stanza) => {
    const [name, version, architecture] = ['package', 'version', 'architecture'].map((field) => stanza.get(field));
    if (name === undefined || version === undefined || architecture === undefined) return [];
    return [{ name, version, architecture, depends: stanza.get('depends') ?? '' }];
  });
}

/** The packages that a simulated `apt-get install` would unpack: `Inst NAME [OLD] (VERSION ARCHIVE [ARCH])`. */
export function parseSimulation(text: string): Omit<PackageRecord, 'depends'>[] {
  const found: Omit<PackageRecord, 'depends'>[] = [];
  for (const line of text.split('\n')) {
    const match = /^Inst (\S+) (?:\[\S+\] )?\((\S+) .*\[(\S+)\]\)/.exec(line);
    const [, name, version, architecture] = match ?? [];
    if (name === undefined || version === undefined || architecture === undefined) continue;
    found.push({ name: name.replace(/:.*$/, ''), version, architecture });
  }
  return found;
}
