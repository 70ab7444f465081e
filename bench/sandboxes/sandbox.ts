import type { TestDaemon } from '../../tests/harness/daemon.ts';
import { until } from '../../tests/harness/until.ts';

/** A sandbox of `base`; killed when its block is left. */
export interface BenchSandbox extends AsyncDisposable {
  readonly id: string;
  readonly accessToken: string;
  /** request to create to its answer, `ms` */
  readonly createMs: number;
  /** `ms` of the parts of the start, by the daemon's log */
  phases(): Promise<Readonly<Record<string, number>>>;
  /** @returns request to delete to its answer, `ms` */
  kill(): Promise<number>;
}

/** @throws Error with the daemon's answer */
export async function createSandbox(daemon: TestDaemon): Promise<BenchSandbox> {
  const begin = performance.now();
  const answer = await daemon.api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600 });
  const text = await answer.text();
  const createMs = performance.now() - begin;
  if (answer.status !== 201) throw new Error(`create was answered with ${answer.status}: ${text}`);
  const { sandboxID: id, envdAccessToken: accessToken } = JSON.parse(text) as Record<string, string | undefined>;
  if (id === undefined || accessToken === undefined) throw new Error(`create was answered with ${text}`);

  let gone = false;
  const kill = async () => {
    gone = true;
    const start = performance.now();
    const { status } = await daemon.api('DELETE', `/sandboxes/${id}`);
    if (status !== 204) throw new Error(`delete was answered with ${status}`);
    return performance.now() - start;
  };
  return {
    id,
    accessToken,
    createMs,
    phases: () => msOf(daemon, 'sandbox running', id),
    kill,
    async [Symbol.asyncDispose]() {
      if (!gone) await kill();
    },
  };
}

/**
 * The `ms` of the newest line of the daemon's log that has this message and is about this sandbox. It is written before
 * the answer goes out, but through another file descriptor.
 */
export async function msOf(
  daemon: TestDaemon,
  message: string,
  sandboxId: string,
): Promise<Readonly<Record<string, number>>> {
  return (await logLine(daemon, message, sandboxId)).ms;
}

export interface LogLine {
  readonly ms: Readonly<Record<string, number>>;
  readonly bytes?: number;
}

/** @param from how many such lines are older than the one that is meant */
export async function logLine(daemon: TestDaemon, message: string, sandboxId: string, from = 0): Promise<LogLine> {
  let found: LogLine | undefined;
  const look = async () => {
    const lines = (await daemon.log()).split('\n').filter((line) => line.includes(message) && line.includes(sandboxId));
    const line = lines[from];
    found = line === undefined ? undefined : (JSON.parse(line) as LogLine);
    return found !== undefined;
  };
  await until(look, { timeoutMs: 5_000, what: `the log tells '${message}' of ${sandboxId}` });
  if (found === undefined) throw new Error('unreachable');
  return found;
}
