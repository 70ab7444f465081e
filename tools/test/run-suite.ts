import { randomUUID } from 'node:crypto';
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
}

const BATCH = join(import.meta.dirname, 'batch.ts');
/** Processes that are told to end may take so many ms until they have. */
const END_MS = 5_000;

/**
 * Runs the files of a suite, so many at a time as it says, and counts their tests. What a process printed is shown when it
 * ends, unless it is the only one.
 */
export async function runSuite(suite: Suite): Promise<SuiteResult> {
  const start = performance.now();
  const counts = { passed: 0, skipped: 0, failures: [] as string[], skips: [] as string[] };
  const batches = batchesOf(suite);
  const work = async () => {
    for (let files = batches.shift(); files !== undefined; files = batches.shift())
      await runFiles(files, suite, counts);
  };
  await Promise.all(Array.from({ length: suite.concurrency }, work));
  const seconds = (performance.now() - start) / 1000;
  return { name: suite.name, failed: counts.failures.length, seconds, ...counts };
}

/** Neighbours go into different batches: those of one folder are often equally slow. */
function batchesOf({ files, filesAtOnce }: Suite): string[][] {
  const batches = Array.from({ length: Math.ceil(files.length / filesAtOnce) }, (): string[] => []);
  for (const [at, file] of files.entries()) batches[at % batches.length]?.push(file);
  return batches;
}

async function runFiles(
  files: readonly string[],
  suite: Suite,
  counts: { passed: number; skipped: number; failures: string[]; skips: string[] },
): Promise<void> {
  const alone = files.length === 1;
  const limitMs = suite.timeoutMs * files.length;
  using processes = new TestProcesses(randomUUID());
  // The types do not know `env` of this version.
  const options = {
    files: alone ? [...files] : [BATCH],
    argv: alone ? [] : [...files],
    concurrency: 1,
    env: { ...process.env, ...suite.env, [MARK]: processes.mark },
  };
  const stream = run(options);
  // A signal, or the runner's own `timeout`, would leave running what the file has started.
  let ending: Promise<string[]> | undefined;
  const timer = setTimeout(() => {
    ending = processes.end();
  }, limitMs);
  const unfinished = new Set(files);
  stream.on('test:pass', (event) => {
    if (event.details.type === 'suite') return unfinished.delete(event.name);
    if (event.skip === undefined || event.skip === false) counts.passed++;
    else {
      counts.skipped++;
      counts.skips.push(`${event.name}${typeof event.skip === 'string' ? ` (${event.skip})` : ''}`);
    }
  });
  stream.on('test:fail', (event) => {
    if (event.details.type === 'suite') unfinished.delete(event.name);
    else counts.failures.push(`${event.file ?? ''} ${event.name}: ${reasonOf(event.details.error)}`);
  });
  const reported: string[] = [];
  for await (const text of stream.compose(new spec())) {
    if (suite.concurrency === 1) process.stdout.write(String(text));
    else reported.push(String(text));
  }
  clearTimeout(timer);
  if (ending !== undefined) {
    // Files of a batch run one after the other. When all have ended, one of them keeps the process alive.
    const [hanging] = unfinished.size === 0 ? [files.join(', ')] : unfinished;
    counts.failures.push(`${hanging} did not end within ${limitMs / 1000} s; ended: ${(await ending).join(', ')}`);
  }
  for (const text of reported) process.stdout.write(text);
  if ((await processes.left(END_MS)).length > 0) {
    console.log(`${files.join(', ')} left running, and now ended: ${(await processes.end()).join(', ')}`);
  }
}

/** What the test itself threw, on a line: the whole of it is with the test, far above the summary. */
function reasonOf(error: Error): string {
  const { message } = error.cause instanceof Error ? error.cause : error;
  return message.replace(/\s+/g, ' ').slice(0, 300);
}
