import { readdir } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ipBatchBestEffort, ipJson, isRecord } from './commands.ts';
import { NETNS_DIR } from './names.ts';

export interface Named {
  readonly links: readonly string[];
  readonly netns: readonly string[];
}

/**
 * Removes links and named namespaces; those that are gone already are no error. The host end of a veth pair is removed
 * by itself and not left to the end of its namespace: a process that still holds the namespace is then cut off too.
 * @throws AenvError `host_command_failed` naming what is still there
 */
export async function removeNamed(wanted: Named): Promise<void> {
  if (wanted.links.length + wanted.netns.length === 0) return;
  const done = await ipBatchBestEffort([
    ...wanted.links.map((name) => `link del dev ${name}`),
    ...wanted.netns.map((name) => `netns del ${name}`),
  ]);
  if (done) return;
  const [links, netns] = await Promise.all([listLinks(), listNetns()]);
  const left = [...wanted.links.filter((name) => links.has(name)), ...wanted.netns.filter((name) => netns.has(name))];
  if (left.length > 0) throw new AenvError('host_command_failed', `could not remove ${left.join(', ')}`);
}

/** Names of all network devices in this process's namespace. */
async function listLinks(): Promise<ReadonlySet<string>> {
  const links = await ipJson('link', 'show');
  return new Set(Array.isArray(links) ? links.filter(isRecord).map((link) => String(link.ifname)) : []);
}

/** Names of all named network namespaces. */
export async function listNetns(): Promise<ReadonlySet<string>> {
  try {
    return new Set(await readdir(NETNS_DIR));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return new Set();
    throw error;
  }
}
