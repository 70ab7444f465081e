import { run } from '@aenv/platform/process/run.ts';

/** Where guest memory can be a private mapping of a file that QEMU itself cannot write (`readonly=on,rom=off`). */
export const SAFE_VERSION = '8.2.0';

/** The version in the first line of `qemu-system-x86_64 --version`, for example `10.0.2`. */
export function parseVersion(output: string): string | undefined {
  return /^QEMU emulator version (\d+\.\d+\.\d+)/.exec(output)?.[1];
}

/** Whether a version is at least another one; both are `MAJOR.MINOR.MICRO`. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [have, need] = [version.split('.').map(Number), minimum.split('.').map(Number)];
  for (const [index, wanted] of need.entries()) {
    const part = have[index] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

/**
 * Asks a QEMU binary for its version, which also shows that it finds its libraries.
 * @throws AenvError `host_command_missing`, `host_command_failed`
 */
export async function askVersion(
  binary: string,
  env: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const result = await run([binary, '--version'], {
    env: { ...process.env, ...env },
    timeoutMs: 20_000,
    ...(signal === undefined ? {} : { signal }),
  });
  return parseVersion(result.stdout);
}
