import { readdir, readFile, readlink } from 'node:fs/promises';
import { run } from '@aenv/platform/process/run.ts';

/**
 * Everything that a daemon could leave on a host, as sorted lines: two inventories are compared before and after.
 * `folders` are walked for files; `daemonPid` adds the daemon's open descriptors by kind.
 */
export async function inventory(options: {
  readonly folders: readonly string[];
  readonly daemonPid?: number;
}): Promise<string[]> {
  const lines = [
    ...(await commands('link', ['ip', '-o', 'link'], (line) => (line.split(': ')[1] ?? line).split('@')[0] ?? line)),
    ...(await commands('address', ['ip', '-o', '-4', 'addr'], (line) => line.replace(/\s+valid_lft.*/, ''))),
    ...(await commands('netns', ['ip', 'netns'], (line) => line.split(' ')[0] ?? line)),
    ...(await commands('route', ['ip', 'route', 'show', 'table', 'all'])),
    ...(await commands('rule', ['ip', 'rule'])),
    ...(await commands('nft', ['nft', 'list', 'tables'])),
    ...(await commands('loop', ['losetup', '-l', '-n', '-O', 'NAME,BACK-FILE'])),
    ...(await mounts()),
    ...(await processes()),
    // Fast suites that run at the same time make folders of their own there.
    ...(await files('/dev/shm')).filter((line) => !line.includes('-test-')),
    ...(await files('/sys/fs/cgroup', (name) => name.includes('aenv'))),
  ];
  for (const folder of options.folders) lines.push(...(await files(folder)));
  if (options.daemonPid !== undefined) lines.push(...(await descriptors(options.daemonPid)));
  return lines.sort();
}

/** Lines that are in only one of two inventories, with + for new and - for gone. */
export function difference(before: readonly string[], after: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of before) counts.set(line, (counts.get(line) ?? 0) - 1);
  for (const line of after) counts.set(line, (counts.get(line) ?? 0) + 1);
  return [...counts].filter(([, n]) => n !== 0).map(([line, n]) => `${n > 0 ? '+' : '-'} ${line}`);
}

async function commands(
  kind: string,
  argv: readonly [string, ...string[]],
  normalise: (line: string) => string = (line) => line,
): Promise<string[]> {
  const { stdout } = await run(argv);
  return stdout
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => `${kind} ${normalise(line.trim())}`);
}

async function mounts(): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `mount ${line.split(' ')[4]}`);
}

/** Virtual machines and helpers by their command line; unrelated processes of the host come and go. */
async function processes(): Promise<string[]> {
  const lines: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const name = text.split('\0')[0] ?? '';
    if (/qemu|nsenter|setpriv|aenv-blockd/.test(name))
      lines.push(`process ${text.replaceAll('\0', ' ').slice(0, 200)}`);
  }
  return lines;
}

async function files(folder: string, wanted: (name: string) => boolean = () => true): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return (
    entries
      .filter((entry) => wanted(entry.name))
      .map((entry) => `file ${entry.parentPath}/${entry.name}`)
      // SQLite's own side files, and the log, are there as long as the daemon runs.
      .filter((line) => !/-(wal|shm)$|\/logs\//.test(line))
  );
}

async function descriptors(pid: number): Promise<string[]> {
  const lines: string[] = [];
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => undefined);
    if (target !== undefined) lines.push(`descriptor ${target.replace(/:?\[\d+\]/, '')}`);
  }
  return lines;
}
