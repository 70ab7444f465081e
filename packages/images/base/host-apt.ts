import {
  debianEnvironment,
  debianRepositories,
  hostSourceEntries,
  withHostOptions,
} from '@aenv/platform/debian/host.ts';
import { formatSources } from '@aenv/platform/debian/sources.ts';
import { run } from '@aenv/platform/process/run.ts';

/** How this host reaches Debian's packages, in the form that mmdebstrap takes. */
export interface HostApt {
  /** text of a `*.sources` file with Debian's own repositories */
  readonly sources: string;
  /** lines of apt.conf(5) */
  readonly settings: readonly string[];
  /** variables that apt takes proxies from, kept out of the image that way */
  readonly proxies: Readonly<Record<string, string>>;
}

/** Settings without which the mirror of this host may be refused: snapshots of the archive have expired lists. */
const SETTINGS = ['Acquire::Check-Valid-Until', 'Acquire::Check-Date'];

export async function readHostApt(signal?: AbortSignal): Promise<HostApt> {
  const entries = await hostSourceEntries(signal);
  const repositories = await debianRepositories([], signal);
  // Without lists apt cannot say which repositories are Debian's; then all of the host's are taken.
  const used = repositories.length > 0 ? repositories.map((one) => withHostOptions(one, entries)) : entries;
  const { stdout } = await run(['apt-config', 'dump', '--format', '%f=%v%n'], {
    env: debianEnvironment(),
    ...(signal === undefined ? {} : { signal }),
  });
  const values = new Map(
    stdout.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const),
  );
  const settings = SETTINGS.flatMap((name) => {
    const value = values.get(name);
    return value === undefined ? [] : [`${name} "${value.replaceAll('"', '')}";`];
  });
  const proxies: Record<string, string> = {};
  for (const scheme of ['http', 'https']) {
    const proxy = values.get(`Acquire::${scheme}::Proxy`);
    if (proxy !== undefined && proxy !== '' && proxy !== 'DIRECT') proxies[`${scheme}_proxy`] = proxy;
  }
  return { sources: formatSources(used), settings, proxies };
}
