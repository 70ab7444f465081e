import { run } from '@aenv/platform/process/run.ts';

/** What one run of wrk(1) showed. */
export interface Load {
  readonly requestsPerSecond: number;
  /** latencies in `ms` */
  readonly p50: number;
  readonly p99: number;
}

export interface LoadOptions {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Asks over and over on several connections at once. @throws Error when an answer was not good */
export async function generateLoad(options: LoadOptions): Promise<Load> {
  const { url, connections, seconds, signal } = options;
  const headers = Object.entries(options.headers ?? {}).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const argv = ['-t', '1', '-c', String(connections), '-d', `${seconds}s`, '--latency', ...headers, url] as const;
  const { stdout } = await run(['wrk', ...argv], { signal, timeoutMs: seconds * 1000 + 30_000 });
  return parseWrk(stdout);
}

const UNITS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };

/** @throws Error when the output is another, or tells of errors */
export function parseWrk(text: string): Load {
  const errors = /^\s*(Socket errors: .*|Non-2xx or 3xx responses: .*)$/m.exec(text)?.[1];
  if (errors !== undefined && !/connect 0, read 0, write 0, timeout 0/.test(errors)) throw new Error(`wrk: ${errors}`);
  const latency = (percent: number) => {
    const [, value, unit] = new RegExp(`^\\s*${percent}%\\s+([\\d.]+)(us|ms|s|m)$`, 'm').exec(text) ?? [];
    return Number(value) * (UNITS[unit ?? ''] ?? Number.NaN);
  };
  const load = {
    requestsPerSecond: Number(/^Requests\/sec:\s*([\d.]+)$/m.exec(text)?.[1]),
    p50: latency(50),
    p99: latency(99),
  };
  if (Object.values(load).some((value) => !(value > 0))) throw new Error(`wrk said something else: ${text}`);
  return load;
}
