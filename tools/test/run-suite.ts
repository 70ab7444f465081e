import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
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
  const stream = run({
    files: alone ? [...files] : [BATCH],
    argv: alone ? [] : [...files],
    concurrency: 1,
    // The runner's own `timeout` gives a file up without ending its process, and then waits for that.
    signal: AbortSignal.timeout(suite.timeoutMs * files.length),
  });
  stream.on('test:pass', (event) => {
    if (event.details.type === 'suite') return;
    if (event.skip === undefined || event.skip === false) counts.passed++;
    else {
      counts.skipped++;
      counts.skips.push(`${event.name}${typeof event.skip === 'string' ? ` (${event.skip})` : ''}`);
    }
  });
  stream.on('test:fail', (event) => {
    if (event.details.type !== 'suite') counts.failures.push(`${event.file ?? ''} ${event.name}`);
  });
  const reported: string[] = [];
  for await (const text of stream.compose(new spec())) {
    if (suite.concurrency === 1) process.stdout.write(String(text));
    else reported.push(String(text));
  }
  for (const text of reported) process.stdout.write(text);
}
