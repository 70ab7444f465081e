import { readFile } from 'node:fs/promises';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { Bench, Measurement, Row } from '../measurement.ts';
import { ratioRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { slotAddress } from './slot-address.ts';
import { generateLoad, type Load } from './wrk.ts';

const ROUNDS = 6;
const SECONDS = 2;
const PORT = 8080;
const PROGRAM = '/tmp/http-server';
/** one at a time for the latency that the proxy adds, several for what it gets through */
const CONNECTIONS = [1, 16] as const;

/** What the way through the proxy costs, compared with reaching the same server in the same guest directly. */
export const proxy: Measurement = {
  name: 'proxy',
  about: 'requests/s and p99 through the proxy, over the same guest reached directly',
  limitMs: 10 * 60_000,
  async run(bench) {
    await installPackages(['wrk'], { log: silentLogger, signal: bench.signal });
    await using daemon = await openDaemon();
    await using sandbox = await createSandbox(daemon);
    await uploadProgram(daemon, sandbox, PROGRAM, await readFile(bench.host.programs.httpServer));
    await runCommand(daemon, sandbox, '/bin/sh', ['-c', `${PROGRAM} ${PORT} && echo started`]);
    const direct = { url: `http://${await slotAddress(sandbox.id)}:${PORT}/` };
    const proxied = {
      url: `${daemon.url}/`,
      headers: { 'e2b-sandbox-id': sandbox.id, 'e2b-sandbox-port': String(PORT) },
    };
    const rows: Row[] = [];
    for (const connections of CONNECTIONS) rows.push(...(await compare(bench, connections, proxied, direct)));
    return rows;
  },
};

interface Way {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function compare(bench: Bench, connections: number, proxied: Way, direct: Way): Promise<Row[]> {
  const load = (way: Way) => () => generateLoad({ ...way, connections, seconds: SECONDS, signal: bench.signal });
  const { a, b } = await interleave(
    bench,
    bench.rounds(ROUNDS),
    load(proxied),
    load(direct),
    (through, straight) =>
      `${connections} connections: ${through.requestsPerSecond.toFixed(0)}/s, direct ${straight.requestsPerSecond.toFixed(0)}/s`,
  );
  const series = (key: keyof Load) => ({ proxied: a.map((run) => run[key]), direct: b.map((run) => run[key]) });
  const many = connections > 1;
  const note = many ? { note: 'the goal is our own' } : undefined;
  return [
    ratioRow(
      `proxy/requests per second, ${connections} at a time, over direct`,
      series('requestsPerSecond'),
      many ? { atLeast: 0.4 } : undefined,
      note,
    ),
    ratioRow(`proxy/p99, ${connections} at a time, over direct`, series('p99'), many ? { atMost: 3 } : undefined, note),
  ];
}
