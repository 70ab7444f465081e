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
 * @param cwd folder that relative paths in them start at
 */
export async function ipBatch(lines: readonly string[], cwd?: string): Promise<void> {
  await run(['ip', '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    timeoutMs: TIMEOUT_MS,
    ...(cwd === undefined ? {} : { cwd }),
  });
}

/**
 * Like `ipBatch`, but goes on after a failure: for removals of what may be gone already.
 * @returns whether all commands succeeded; if not, look what is left
 */
export async function ipBatchBestEffort(lines: readonly string[]): Promise<boolean> {
  if (lines.length === 0) return true;
  const { code } = await run(['ip', '-force', '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    timeoutMs: TIMEOUT_MS,
    okCodes: [0, 1, 2],
  });
  return code === 0;
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

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
