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

/** Runs the files of a suite, each in a process of its own, and counts their tests. Reports to stdout as it goes. */
export async function runSuite(suite: Suite): Promise<SuiteResult> {
  const start = performance.now();
  let passed = 0;
  let skipped = 0;
  const failures: string[] = [];
  const skips: string[] = [];
  if (suite.files.length > 0) {
    const stream = run({ files: [...suite.files], concurrency: suite.concurrency, timeout: suite.timeoutMs });
    stream.on('test:pass', (event) => {
      if (event.details.type === 'suite') return;
      if (event.skip === undefined || event.skip === false) passed++;
      else {
        skipped++;
        skips.push(`${event.name}${typeof event.skip === 'string' ? ` (${event.skip})` : ''}`);
      }
    });
    stream.on('test:fail', (event) => {
      if (event.details.type !== 'suite') failures.push(`${event.file ?? ''} ${event.name}`);
    });
    const done = new Promise<void>((resolve, reject) => {
      stream.once('end', resolve);
      stream.once('error', reject);
    });
    stream.compose(new spec()).pipe(process.stdout, { end: false });
    await done;
  }
  const seconds = (performance.now() - start) / 1000;
  return { name: suite.name, passed, failed: failures.length, skipped, seconds, failures, skips };
}
