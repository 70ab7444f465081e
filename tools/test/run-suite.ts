import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { MARK, TestProcesses } from './processes.ts';
import type { Suite } from './suites.ts';

export interface SuiteResult {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly seconds: number;
  readonly failures: readonly string[];
  readonly skips: readonly string[];
  /** the files, where each has a process of its own, as they ended */
  readonly times: readonly FileTime[];
}

/** When a file ran, in seconds from the beginning of its suite. */
export interface FileTime {
  readonly file: string;
  readonly begin: number;
  readonly end: number;
}

const BATCH = join(import.meta.dirname, 'batch.ts');
/** Processes that are told to end may take so many ms until they have. */
const END_MS = 5_000;
/** A process that goes on for longer after its last test is told of. */
const KEPT_SECONDS = 2;

interface Counts {
  passed: number;
  skipped: number;
  readonly failures: string[];
  readonly skips: string[];
}

/**
 * Runs the files of a suite, so many at a time as it says, and counts their tests. What a process printed is shown when it
 * ends, unless it is the only one.
 */
export async function runSuite(suite: Suite): Promise<SuiteResult> {
  const start = performance.now();
  const counts: Counts = { passed: 0, skipped: 0, failures: [], skips: [] };
  const times: FileTime[] = [];
  const seconds = () => (performance.now() - start) / 1000;
  const workers = (work: () => Promise<void>) => Promise.all(Array.from({ length: suite.concurrency }, work));
  if (suite.shareProcesses) {
    const taken = await mkdtemp(join(suite.env?.TMPDIR ?? tmpdir(), 'aenv-test-taken-'));
    const missing = new Set(suite.files);
    const left = async () => suite.files.length - (await readdir(taken)).length;
    await workers(async () => {
      // Another process goes on where one ended too early, unless none gets anywhere.
      for (let before = Infinity, now = await left(); now > 0 && now < before; before = now, now = await left()) {
        await runProcess([BATCH], [taken, ...suite.files], missing, suite, counts);
      }
    });
    for (const file of missing) counts.failures.push(`${file} did not come to its end`);
    await rm(taken, { recursive: true });
  } else {
    const files = [...suite.files];
    await workers(async () => {
      for (let file = files.shift(); file !== undefined; file = files.shift()) {
        const begin = seconds();
        await runProcess([file], [], new Set(), suite, counts);
        times.push({ file, begin, end: seconds() });
      }
    });
  }
  return { name: suite.name, failed: counts.failures.length, seconds: seconds(), times, ...counts };
}

/** @param missing files that the process may run as suites of their names; those that end are taken out */
async function runProcess(
  files: readonly string[],
  argv: readonly string[],
  missing: Set<string>,
  suite: Suite,
  counts: Counts,
): Promise<void> {
  using processes = new TestProcesses(randomUUID());
  // The types do not know `env` of this version.
  const options = {
    files: [...files],
    argv: [...argv],
    execArgv: [...(suite.execArgv ?? [])],
    concurrency: 1,
    env: { ...process.env, ...suite.env, [MARK]: processes.mark },
  };
  const stream = run(options);
  // A signal, or the runner's own `timeout`, would leave running what the file has started.
  let ending: Promise<string[]> | undefined;
  const limit = setTimeout(() => {
    ending = processes.end();
  }, suite.timeoutMs);
  /** those that this process has begun, the last one may be going on */
  let begun = files;
  stream.on('test:enqueue', ({ name }) => {
    if (missing.has(name)) begun = begun[0] === BATCH ? [name] : [...begun, name];
  });
  const fileEnds = (name: string) => {
    if (missing.delete(name)) limit.refresh();
  };
  let lastAt = performance.now();
  for (const event of ['test:pass', 'test:fail'] as const) {
    stream.on(event, () => {
      lastAt = performance.now();
    });
  }
  stream.on('test:pass', (event) => {
    if (event.details.type === 'suite') return fileEnds(event.name);
    if (event.skip === undefined || event.skip === false) counts.passed++;
    else {
      counts.skipped++;
      counts.skips.push(`${event.name}${typeof event.skip === 'string' ? ` (${event.skip})` : ''}`);
    }
  });
  stream.on('test:fail', (event) => {
    if (event.details.type === 'suite') fileEnds(event.name);
    // Of a suite it may be its own failure, as that of a hook, or that of a test, which is counted already.
    const { error } = event.details;
    if (!('failureType' in error) || error.failureType !== 'subtestsFailed')
      counts.failures.push(`${event.file ?? ''} ${event.name}: ${reasonOf(error)}`);
  });
  const reported: string[] = [];
  for await (const text of stream.compose(new spec())) {
    if (suite.concurrency === 1) process.stdout.write(String(text));
    else reported.push(String(text));
  }
  clearTimeout(limit);
  const keptSeconds = (performance.now() - lastAt) / 1000;
  // A timer or a socket that a test has left keeps the process, and the suite with it.
  if (keptSeconds > KEPT_SECONDS) {
    const whose = begun.length === 1 ? begun[0] : `${begun.length} files`;
    console.log(`something kept the process of ${whose} ${keptSeconds.toFixed(1)} s beyond its last test`);
  }
  if (ending !== undefined) {
    const last = begun.at(-1) ?? '';
    // When all files have ended, one of them keeps the process alive.
    const hanging = missing.delete(last) ? last : begun.join(', ');
    counts.failures.push(
      `${hanging} did not end within ${suite.timeoutMs / 1000} s; ended: ${(await ending).join(', ')}`,
    );
  }
  for (const text of reported) process.stdout.write(text);
  if ((await processes.left(END_MS)).length > 0) {
    console.log(`${begun.join(', ')} left running, and now ended: ${(await processes.end()).join(', ')}`);
  }
}

/** What the test itself threw, on a line: the whole of it is with the test, far above the summary. */
function reasonOf(error: Error): string {
  const { message } = error.cause instanceof Error ? error.cause : error;
  return message.replace(/\s+/g, ' ').slice(0, 300);
}
