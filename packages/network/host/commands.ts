import { run } from '@aenv/platform/process/run.ts';

/** Debian packages of the host programs that this room runs: ip, nft, nsenter, sysctl. */
export const NETWORK_HOST_PACKAGES: readonly string[] = ['iproute2', 'nftables', 'util-linux', 'procps'];

/** The programs themselves, each with the package that has it. */
export const NETWORK_HOST_PROGRAMS: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  nft: 'nftables',
  nsenter: 'util-linux',
  sysctl: 'procps',
};

const TIMEOUT_MS = 20_000;

/**
 * Runs commands of ip(8) in one process; it stops at the first that fails.
 * @param netns name of the namespace to run in, default that of this process
 */
export async function ipBatch(lines: readonly string[], netns?: string): Promise<void> {
  const where = netns === undefined ? [] : ['-n', netns];
  await run(['ip', ...where, '-batch', '-'], { input: `${lines.join('\n')}\n`, timeoutMs: TIMEOUT_MS });
}

/** Like `ipBatch`, but goes on after a failure: for removals, whose result is checked by looking afterwards. */
export async function ipBatchBestEffort(lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return;
  await run(['ip', '-force', '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    timeoutMs: TIMEOUT_MS,
    okCodes: [0, 1, 2],
  });
}

/** What `ip -j ...` prints. */
export async function ipJson(...args: readonly string[]): Promise<unknown> {
  const { stdout } = await run(['ip', '-j', ...args], { timeoutMs: TIMEOUT_MS });
  return stdout.trim() === '' ? [] : JSON.parse(stdout);
}

/** Applies an nft script as one transaction: all of it or nothing. */
export async function nftApply(script: string, netnsPath?: string): Promise<void> {
  const argv = ['nft', '-f', '-'] as const;
  await run(netnsPath === undefined ? argv : ['nsenter', `--net=${netnsPath}`, ...argv], {
    input: script,
    timeoutMs: TIMEOUT_MS,
  });
}

/** The `nftables` array that `nft -j ...` prints (libnftables-json(5)). */
export async function nftJson(...args: readonly string[]): Promise<readonly unknown[]> {
  const { stdout } = await run(['nft', '-j', ...args], { timeoutMs: TIMEOUT_MS });
  const answer: unknown = JSON.parse(stdout);
  return isRecord(answer) && Array.isArray(answer.nftables) ? answer.nftables : [];
}

/** Sets kernel parameters inside a namespace; names that this kernel does not have are passed over. */
export async function setSysctls(netnsPath: string, values: Readonly<Record<string, string>>): Promise<void> {
  const settings = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  await run(['nsenter', `--net=${netnsPath}`, 'sysctl', '-qe', '-w', ...settings], { timeoutMs: TIMEOUT_MS });
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
