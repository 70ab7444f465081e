import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import { until } from '../../tests/harness/until.ts';

/** `ms` by the guest's own clock, as far as its console tells them. */
export interface GuestMarks {
  /** start of the kernel's clock to the execution of envd */
  readonly kernelToEnvdStart?: number;
  /** from there, as the runtime counts it, until envd listens */
  readonly envdStartToListening?: number;
}

/** Reads the console of a running sandbox, which the daemon writes down twice a second. */
export async function guestMarks(daemon: TestDaemon, sandboxId: string): Promise<GuestMarks> {
  const folder = join(daemon.home, 'logs', 'serial');
  let marks: GuestMarks = {};
  const complete = async () => {
    const name = (await readdir(folder)).find((file) => file.startsWith(sandboxId));
    if (name === undefined) return false;
    marks = parseMarks(await readFile(join(folder, name), 'utf8'));
    return marks.envdStartToListening !== undefined;
  };
  // What is not said is left out: these are explanations, not results.
  await until(complete, { timeoutMs: 3_000, what: 'the console is written down' }).catch(() => {});
  return marks;
}

export function parseMarks(console: string): GuestMarks {
  const start = /starting envd (\d+) ms after the kernel/.exec(console)?.[1];
  const listens = /"uptimeMs":(\d+)/.exec(console)?.[1];
  return {
    ...(start === undefined ? {} : { kernelToEnvdStart: Number(start) }),
    ...(listens === undefined ? {} : { envdStartToListening: Number(listens) }),
  };
}
