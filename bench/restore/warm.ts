import { join } from 'node:path';
import { findVmProcesses } from '@aenv/node/sandboxes/recovery/processes.ts';
import { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Row } from '../measurement.ts';
import { pssOf } from '../memory/pss.ts';
import { seriesRow } from '../report/rows.ts';
import { PhaseSeries } from '../sampling/phases.ts';
import { slotsReady, warmReady } from '../sandboxes/gauges.ts';
import { type FirstCommand, firstCommand } from './first-command.ts';

const ROUNDS = 10;
/** That stand ready at a time. */
const READY = 2;
const START_MS = 120_000;

/** The same where machines stand ready: what is left is to tell one who it is. */
export async function warmRows(bench: Bench): Promise<Row[]> {
  await using daemon = await TestDaemon.start({
    startMs: START_MS,
    env: { AENV_WARM_LOW: String(READY), AENV_WARM_HIGH: String(READY) },
  });
  await warmReady(bench, daemon, READY);
  const processes = await findVmProcesses(join(daemon.runtime, 'vm'));
  const pss = await Promise.all(processes.map(({ pid }) => pssOf(pid)));
  const samples: FirstCommand[] = [];
  const rounds = bench.rounds(ROUNDS);
  for (let round = 0; round <= rounds; round++) {
    await warmReady(bench, daemon, READY);
    await slotsReady(bench, daemon);
    const sample = await firstCommand(daemon);
    // Only a create that found one ready has no phase in which a VM is started.
    if (sample.phases.vm !== undefined) throw new Error('a create found no machine that stood ready');
    bench.say(`warm: create ${sample.createMs.toFixed(0)} ms, first output ${sample.execMs.toFixed(0)} ms later`);
    if (round > 0) samples.push(sample);
  }
  const phases = new PhaseSeries(samples.map((sample) => sample.phases));
  const total = samples.map(({ totalMs }) => totalMs);
  const create = samples.map(({ createMs }) => createMs);
  return [
    seriesRow(
      'restore/create to first output, from a warm pool',
      total,
      'ms',
      { atMost: 30 },
      {
        create: phases.medians(),
        exec: new PhaseSeries(samples.map(({ execMs }) => ({ firstByte: execMs }))).medians(),
      },
    ),
    seriesRow('restore/create alone, from a warm pool', create, 'ms'),
    seriesRow('restore/memory of one that stands ready', pss, 'MiB', undefined, {
      note: `proportional set size of QEMU, ${READY} of one template ready`,
    }),
  ];
}
