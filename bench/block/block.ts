import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackages } from '@aenv/platform/debian/packages.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { Bench, Measurement, Row } from '../measurement.ts';
import { type Goal, ratioRow } from '../report/rows.ts';
import { median } from '../sampling/statistics.ts';
import { memoryRows } from './daemon-memory.ts';
import { fio, type Workload } from './fio.ts';
import { type DiskServer, type DiskShape, openBlockd, serveOurs, serveQcow2, serveRaw } from './servers.ts';
import { swapRows } from './swap.ts';

const ROUNDS = 6;
const SECONDS = 2;
const SHAPE: DiskShape = { size: 2 ** 30, layers: 3, share: 0.1 };

/** Reads first, so that they find the same disks. */
const WORKLOADS: readonly Workload[] = [
  { name: '4k random read, 1 at a time', rw: 'randread', blockSize: '4k', depth: 1 },
  { name: '4k random read, 32 at a time', rw: 'randread', blockSize: '4k', depth: 32 },
  { name: '1M sequential read, 4 at a time', rw: 'read', blockSize: '1M', depth: 4 },
  { name: '4k random write, 1 at a time', rw: 'randwrite', blockSize: '4k', depth: 1 },
  { name: '4k random write, 32 at a time', rw: 'randwrite', blockSize: '4k', depth: 32 },
];

/** What serving a disk costs, against servers in C; all in the page cache, client and server on the same processors. */
export const block: Measurement = {
  name: 'block',
  about: 'operations/s of a disk of 4 layers over a qcow2 chain in qemu-nbd and a file in nbdkit; time of a snapshot',
  limitMs: 20 * 60_000,
  async run(bench) {
    await installPackages(['fio', 'nbdkit', 'qemu-utils'], { log: silentLogger, signal: bench.signal });
    await using host = await openBlockd();
    const memory = await memoryRows(bench, host);
    return [...memory, ...(await compare(bench, host)), ...(await swapRows(bench, host))];
  },
};

async function compare(bench: Bench, host: Awaited<ReturnType<typeof openBlockd>>): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), 'aenv-bench-block-'));
  try {
    await using ours = await serveOurs(host, SHAPE, bench.signal);
    await using qcow2 = await serveQcow2(folder, SHAPE, bench.signal);
    await using raw = await serveRaw(folder, SHAPE, bench.signal);
    const rows: Row[] = [];
    for (const workload of WORKLOADS) rows.push(...(await rowsOf(bench, workload, [ours, qcow2, raw])));
    return rows;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Each server in turn, beginning with another one each round, so that whatever else the machine does falls on all. */
async function rowsOf(bench: Bench, workload: Workload, servers: readonly DiskServer[]): Promise<Row[]> {
  const samples = new Map(servers.map(({ name }) => [name, [] as number[]]));
  const rounds = bench.rounds(ROUNDS);
  for (let round = 0; round <= rounds; round++) {
    for (let turn = 0; turn < servers.length; turn++) {
      const server = servers[(round + turn) % servers.length];
      if (server === undefined) continue;
      const { socket, name } = server;
      const { size } = SHAPE;
      const rate = await fio({ socket, workload, size, seconds: SECONDS, seed: round + 1, signal: bench.signal });
      // The first round fills the page cache.
      if (round > 0) samples.get(name)?.push(rate);
    }
  }
  const of = (name: string) => samples.get(name) ?? [];
  const told = servers.map(({ name }) => `${name} ${median(of(name)).toFixed(0)}`).join(', ');
  bench.say(`${workload.name}: ${told} /s`);
  const many = workload.depth === 32;
  const atLeastAsFast: Goal = { atLeast: 1 };
  return [
    ratioRow(`block/${workload.name}, over qcow2 chain`, { aenv: of('aenv'), qcow2: of('qcow2') }, atLeastAsFast),
    ratioRow(
      `block/${workload.name}, over nbdkit file`,
      { aenv: of('aenv'), nbdkit: of('nbdkit') },
      many ? atLeastAsFast : undefined,
    ),
  ];
}
