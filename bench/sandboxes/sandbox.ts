import type { TestDaemon } from '../../tests/harness/daemon.ts';
import { until } from '../../tests/harness/until.ts';

/** A sandbox of `base`; killed when its block is left. */
export interface BenchSandbox extends AsyncDisposable {
  readonly id: string;
  readonly accessToken: string;
  /** request to create to its answer, `ms` */
  readonly createMs: number;
  /** `ms` of the parts of the start, by the daemon's log */
  readonly phases: Readonly<Record<string, number>>;
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
    phases: await phasesOf(daemon, id),
    kill,
    async [Symbol.asyncDispose]() {
      if (!gone) await kill();
    },
  };
}

/** The log line is written before the answer goes out, but through another file descriptor. */
async function phasesOf(daemon: TestDaemon, id: string): Promise<Readonly<Record<string, number>>> {
  let phases: Readonly<Record<string, number>> | undefined;
  const look = async () => {
    const line = (await daemon.log())
      .split('\n')
      .find((candidate) => candidate.includes('sandbox running') && candidate.includes(id));
    phases = line === undefined ? undefined : (JSON.parse(line) as { ms?: Record<string, number> }).ms;
    return phases !== undefined;
  };
  await until(look, { timeoutMs: 5_000, what: `the log tells how ${id} was started` });
  return phases ?? {};
}
