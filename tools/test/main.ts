/**
 * `make test` and `make soak`: sets the host up, runs the suites one after the other and prints for each its time, and at
 * the end how many virtual machines booted, how many distinct boot ids they had and how many tests were skipped.
 *
 * Arguments, all optional: names of suites, or files to run instead.
 */
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readBoots } from '../../tests/harness/boots.ts';
import { captureBase } from './capture-base.ts';
import { installTestPackages, prepareTests } from './prepare.ts';
import { type FileTime, runSuite, type SuiteResult } from './run-suite.ts';
import { openScratch, openTemporary } from './scratch.ts';
import { findSuites } from './suites.ts';

/** files of a suite that are told of for the time that they took */
const SHOWN = 6;
const scratch = await openScratch(tmpdir());
/** folder for temporary files of tests that boot nothing */
const temporary = await openTemporary(scratch);
const results: SuiteResult[] = [];
let vmSuites = 0;
try {
  process.env.AENV_TEST_BOOTS = join(scratch, 'boots');
  // Hundreds of processes load the same modules.
  process.env.NODE_COMPILE_CACHE ??= resolve('.build/compile-cache');
  await prepareTests(new AbortController().signal);
  for (const suite of await findSuites(process.argv.slice(2))) {
    if (suite.bootsVms && vmSuites++ === 0) {
      await installTestPackages(new AbortController().signal);
      await captureBase();
    }
    console.log(`\n=== ${suite.name}: ${suite.files.length} files`);
    const env = suite.bootsVms ? suite.env : { ...suite.env, TMPDIR: temporary };
    const result = await runSuite({ ...suite, ...(env === undefined ? {} : { env }) });
    const left = await readdir(temporary);
    const failures = left.map((name) => `${name} was left in the folder for temporary files`);
    results.push({ ...result, failed: result.failed + left.length, failures: [...result.failures, ...failures] });
    for (const name of left) await rm(join(temporary, name), { recursive: true, force: true });
  }
  const boots = await readBoots();
  console.log('\nsuite                     passed  failed  skipped  seconds');
  for (const r of results) {
    console.log(
      `${r.name.padEnd(24)}  ${pad(r.passed)}  ${pad(r.failed)}  ${pad(r.skipped)}  ${r.seconds.toFixed(1).padStart(7)}`,
    );
  }
  for (const { name, times } of results) if (times.length > SHOWN) console.log(`longest: ${name}: ${longest(times)}`);
  const sum = (key: 'passed' | 'failed' | 'skipped') => results.reduce((total, r) => total + r[key], 0);
  for (const r of results) for (const name of r.failures) console.log(`failed: ${r.name}: ${name}`);
  for (const r of results) for (const name of r.skips) console.log(`skipped: ${r.name}: ${name}`);
  console.log(`virtual machines booted: ${boots.length}, distinct boot ids: ${new Set(boots).size}`);
  const noBoots = vmSuites > 0 && boots.length === 0;
  const sharedKernel = new Set(boots).size !== boots.length;
  if (noBoots) console.log('failed: virtual machines were due, and none booted');
  if (sharedKernel) console.log('failed: two virtual machines had the same boot id');
  console.log(`test: ${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
  process.exitCode = sum('failed') > 0 || sum('passed') === 0 || noBoots || sharedKernel ? 1 : 0;
} finally {
  for (const folder of [scratch, temporary]) await rm(folder, { recursive: true, force: true });
}

/** Those that take long and begin late are what a suite waits for at its end: see `LONG` in suites.ts. */
function longest(times: readonly FileTime[]): string {
  const sorted = times.toSorted((one, other) => other.end - other.begin - (one.end - one.begin)).slice(0, SHOWN);
  const texts = sorted.map(
    ({ file, begin, end }) => `${file} ${(end - begin).toFixed(0)} s from ${begin.toFixed(0)} s on`,
  );
  return `${texts.join(', ')}; last ended ${times.at(-1)?.file}`;
}

function pad(value: number): string {
  return String(value).padStart(6);
}
