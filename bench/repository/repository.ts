import type { Bench, Measurement, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { MemoryKeeper } from './kept-memory.ts';

const ROUNDS = 6;
/** MiB that differ from the base: of a short pause, of a busy VM */
const DELTAS = [2, 200];
/** MiB of a guest that has booted */
const BOOTED = 120;

/** What it costs to keep a captured machine, without the VM. */
export const repository: Measurement = {
  name: 'repository',
  about: 'keeping memory: a delta over writing and syncing the same bytes, a template, and both made ready to start',
  limitMs: 10 * 60_000,
  async run(bench) {
    await using keeper = await MemoryKeeper.open();
    const base = await keeper.base(BOOTED);
    const rows: Row[] = [];
    for (const mib of DELTAS) rows.push(...(await deltaRows(bench, keeper, base, mib)));
    return [...rows, await templateRow(bench, keeper)];
  },
};

async function deltaRows(bench: Bench, keeper: MemoryKeeper, base: string, mib: number): Promise<Row[]> {
  const { a: kept, b: plain } = await interleave(
    bench,
    bench.rounds(ROUNDS),
    () => keeper.keep(mib, base, { asNewBase: false }),
    () => keeper.plain(mib),
    (ours, theirs) => `delta of ${mib} MiB ${ours.totalMs.toFixed(0)} ms, plain file ${theirs.toFixed(0)} ms`,
  );
  const series = (of: keyof (typeof kept)[number]) => kept.map((sample) => sample[of]);
  const name = `repository/delta of ${mib} MiB`;
  return [
    ratioRow(`${name}, durable, over a plain file`, { delta: series('totalMs'), plain }),
    seriesRow(`${name}, pages taken`, series('streamMs'), 'ms'),
    seriesRow(`${name}, ready to start`, series('openMs'), 'ms'),
  ];
}

async function templateRow(bench: Bench, keeper: MemoryKeeper): Promise<Row> {
  const times: number[] = [];
  for (let round = 1; round <= Math.min(3, bench.rounds(ROUNDS)); round++) {
    const { totalMs } = await keeper.keep(BOOTED, undefined, { asNewBase: true }, round);
    bench.say(`template of ${BOOTED} MiB ${totalMs.toFixed(0)} ms`);
    times.push(totalMs);
  }
  return seriesRow(`repository/template of ${BOOTED} MiB`, times, 'ms');
}
