/**
 * `make bench`: sets the host up, makes the measurements one after the other, prints a table, and writes `latest.json`; a
 * run of some measurements replaces their rows there. A missed goal is part of the result; only a measurement that could not
 * be made is a failure.
 *
 * Arguments, all optional: names of measurements; `--quick` for few samples; `--list`.
 */
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { prepareTests } from '../tools/test/prepare.ts';
import { type BenchArguments, parseArguments } from './arguments.ts';
import { type BenchHost, openHost } from './host/bench-host.ts';
import { load } from './host/machine.ts';
import type { Bench, Measurement, Row } from './measurement.ts';
import { MEASUREMENTS } from './measurements.ts';
import { writeRun } from './report/latest.ts';
import { table } from './report/table.ts';

const LATEST = new URL('latest.json', import.meta.url).pathname;
/** A measurement that was told to end has this long to clean up. */
const CLEAN_UP_MS = 120_000;
const BUSY_SHARE = 0.75;

process.exitCode = await main();

async function main(): Promise<number> {
  let wanted: BenchArguments;
  try {
    wanted = parseArguments(
      process.argv.slice(2),
      MEASUREMENTS.map(({ name }) => name),
    );
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}`);
    return 2;
  }
  if (wanted.list) {
    for (const { name, about } of MEASUREMENTS) console.log(`${name.padEnd(10)} ${about}`);
    return 0;
  }
  const end = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => end.abort(new Error(`told to end by ${signal}`)));
  }
  let host: BenchHost;
  try {
    await prepareTests(end.signal);
    host = await openHost(end.signal);
  } catch (error) {
    const { message, remediation } = AenvError.from(error);
    console.error(`bench: ${message}${remediation === '' ? '' : `\n${remediation}`}`);
    return 1;
  }
  return await measureAll(wanted, host, end.signal);
}

async function measureAll(wanted: BenchArguments, host: BenchHost, end: AbortSignal): Promise<number> {
  const { facts } = host;
  const before = load();
  console.log(
    `\n${facts.cpu}, ${facts.cores} cores, ${facts.memory} GiB, Linux ${facts.kernel}, QEMU ${facts.qemu} (${facts.accelerator}), load ${before}`,
  );
  if (before > facts.cores * BUSY_SHARE) console.log('the machine is busy: ratios hold roughly, times do not');

  const rows: Row[] = [];
  const failures: string[] = [];
  const chosen = MEASUREMENTS.filter(({ name }) => wanted.names.length === 0 || wanted.names.includes(name));
  for (const measurement of chosen) {
    if (end.aborted) break;
    console.log(`\n=== ${measurement.name}: ${measurement.about}`);
    const begin = performance.now();
    try {
      rows.push(...(await make(measurement, host, wanted.quick, end)));
    } catch (error) {
      failures.push(`${measurement.name}: ${error instanceof Error ? error.message : error}`);
      console.error(error);
    }
    console.log(`    ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  }

  console.log(`\n${table(rows)}`);
  for (const failure of failures) console.error(`could not be measured: ${failure}`);
  if (failures.length > 0 || end.aborted) return 1;
  if (wanted.quick) {
    console.log('\nnot written down: too few samples');
    return 0;
  }
  const complete = chosen.length === MEASUREMENTS.length;
  const around = { before, after: load() };
  const run = { measuredAt: new Date().toISOString(), load: around, machine: facts, complete, rows };
  const written = await writeRun(LATEST, run);
  console.log(
    written ? '\nwritten to bench/latest.json' : '\nnot written down: the last complete run was on another machine',
  );
  return 0;
}

async function make(
  measurement: Measurement,
  host: BenchHost,
  quick: boolean,
  end: AbortSignal,
): Promise<readonly Row[]> {
  const limit = new AbortController();
  const signal = AbortSignal.any([end, limit.signal]);
  const timer = setTimeout(
    () => limit.abort(new Error(`not done within ${measurement.limitMs / 60_000} minutes`)),
    measurement.limitMs,
  );
  const bench: Bench = {
    host,
    signal,
    rounds: (full) => (quick ? Math.max(2, Math.round(full / 5)) : full),
    say: (text) => console.log(`    ${text}`),
  };
  const watch = watchdog(signal);
  try {
    return await measurement.run(bench);
  } finally {
    clearTimeout(timer);
    watch();
  }
}

/**
 * Ends the process when a measurement that was told to end does not.
 * @returns calls the watch off
 */
function watchdog(signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  const start = () => {
    timer = setTimeout(() => {
      console.error('bench: a measurement does not end');
      process.exit(1);
    }, CLEAN_UP_MS);
  };
  signal.addEventListener('abort', start, { once: true });
  return () => {
    signal.removeEventListener('abort', start);
    clearTimeout(timer);
  };
}
