import { availableParallelism } from 'node:os';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import { BareMachines } from '../bare/bare-machines.ts';
import { capturedMachine } from '../bare/captured-machine.ts';
import type { Bench, Measurement, Row } from '../measurement.ts';
import { ratioRow, seriesRow } from '../report/rows.ts';
import { PhaseSeries } from '../sampling/phases.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { slotsReady } from '../sandboxes/gauges.ts';
import { type BenchSandbox, createSandbox } from '../sandboxes/sandbox.ts';
import { type BareClones, cloneBare, restoreBare } from './bare-clones.ts';
import { type Forked, forkOnce } from './children.ts';

const ROUNDS = 3;
const CHILDREN = 16;
/** Single restores that are timed for each fork, before and after it. */
const RESTORES = 4;

/** What many children of one sandbox cost: in time, over as many single restores, and in memory, over bare clones. */
export const fork: Measurement = {
  name: 'fork',
  about: `fork of ${CHILDREN}: time over as many restores one by one, and memory of a child over a bare clone's`,
  limitMs: 10 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon();
    await using source = await createSandbox(daemon);
    await using bare = await BareMachines.open(bench, await capturedMachine(daemon), CHILDREN);
    const forks: Forked[] = [];
    const restores: number[] = [];
    const clones: BareClones[] = [];
    const bareRestores: number[] = [];
    const rounds = bench.rounds(ROUNDS);
    for (let round = 1; round <= rounds; round++) {
      restores.push(...(await singleRestores(bench, daemon)));
      await slotsReady(bench, daemon);
      const forked = await forkOnce(bench, daemon, source, CHILDREN, round - 1);
      restores.push(...(await singleRestores(bench, daemon)));
      await slotsReady(bench, daemon);
      for (let n = 0; n < RESTORES / 2; n++) bareRestores.push(await restoreBare(bench, bare));
      const clone = await cloneBare(bench, bare);
      for (let n = 0; n < RESTORES / 2; n++) bareRestores.push(await restoreBare(bench, bare));
      bench.say(
        `${round}/${rounds}: ${CHILDREN} children in ${forked.ms.toFixed(0)} ms, ${mean(forked.pss).toFixed(0)} MiB each, bare clones in ${clone.ms.toFixed(0)} ms, ${mean(clone.pss).toFixed(0)} MiB`,
      );
      forks.push(forked);
      clones.push(clone);
    }
    return rows(forks, restores, clones, bareRestores);
  },
};

async function singleRestores(bench: Bench, daemon: TestDaemon): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < RESTORES / 2; n++) {
    await slotsReady(bench, daemon);
    await using sandbox: BenchSandbox = await createSandbox(daemon);
    times.push(sandbox.createMs);
  }
  return times;
}

function rows(
  forks: readonly Forked[],
  restores: readonly number[],
  clones: readonly BareClones[],
  bareRestores: readonly number[],
): Row[] {
  const cores = availableParallelism();
  const turns = CHILDREN / Math.min(CHILDREN, cores);
  const child = forks.map(({ pss }) => mean(pss));
  const last = forks.map(({ ms }) => ms);
  const lastClone = clones.map(({ ms }) => ms);
  return [
    ratioRow(
      `fork/${CHILDREN} children ready, over ${CHILDREN} restores on ${cores} cores`,
      { fork: last, [`${turns} restores`]: restores.map((ms) => ms * turns) },
      { atMost: 1.6 },
      {
        phases: new PhaseSeries(forks.map(({ phases }) => phases)).medians(),
        note: 'series in ms; from the request to its answer, when all children run; a restore is a create of the same template, alone',
      },
    ),
    ratioRow(
      `fork/${CHILDREN} bare clones ready, over ${CHILDREN} bare restores on ${cores} cores`,
      { clones: lastClone, [`${turns} restores`]: bareRestores.map((ms) => ms * turns) },
      undefined,
      {
        note: 'series in ms; what this machine makes of the same without a daemon: clones of the template, told the same',
      },
    ),
    ratioRow(
      `fork/${CHILDREN} children ready, over ${CHILDREN} bare clones`,
      { fork: last, clones: lastClone },
      undefined,
      {
        note: 'series in ms; a fork has the capture of its source in it',
      },
    ),
    ratioRow(
      'fork/memory of a child over a bare clone',
      { child, clone: clones.map(({ pss }) => mean(pss)) },
      { atMost: 1.3 },
      {
        note: `proportional set size of QEMU in MiB, ${CHILDREN} at a time, each after one command; clones of the template's machine`,
      },
    ),
    seriesRow(`fork/${CHILDREN} children ready`, last, 'ms'),
    seriesRow('fork/memory of a child', child, 'MiB'),
  ];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
