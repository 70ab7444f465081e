/**
 * Runs test files in this process, each as a suite that bears its name: a process for each costs more than most of the
 * tests do. Several of these share a list; each takes the next file of it that none has taken. What a file does to its
 * process, others see. With AENV_TEST_COSTS, a file, each one adds a line to it: ms of the processor of this process and of
 * its children.
 *
 * Arguments: an empty folder for what is taken, and the test files.
 */
import './test-context.ts';
import { appendFileSync, closeSync, openSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

// Only now: node:test is to find what test-context.ts has changed.
const { after, suite } = await import('node:test');
const costs = process.env.AENV_TEST_COSTS;
const [folder = '', ...files] = process.argv.slice(2);
let before = used();

for (const [at, file] of files.entries()) if (take(at)) await runFile(file);

function take(at: number): boolean {
  try {
    closeSync(openSync(join(folder, String(at)), 'wx'));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Until its tests have ended, or cannot be loaded. */
function runFile(file: string): Promise<void> {
  return new Promise((ended) => {
    suite(file, async () => {
      // First, since a hook of the file that fails would be the last one.
      after(() => ended());
      await import(resolve(file)).catch((error: unknown) => {
        ended();
        throw error;
      });
      if (costs !== undefined) after(() => tellCosts(costs, file));
    });
  });
}

function tellCosts(path: string, file: string): void {
  const now = used();
  const [own, children] = [now.own - before.own, now.children - before.children];
  appendFileSync(path, `${own.toFixed(0).padStart(7)} ${children.toFixed(0).padStart(7)} ${file}\n`);
  before = now;
}

/** Times of proc_pid_stat(5) are in ticks of 10 ms; those of children are known when they have ended. */
function used(): { own: number; children: number } {
  const { user, system } = process.cpuUsage();
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { own: (user + system) / 1000, children: (Number(fields[13]) + Number(fields[14])) * 10 };
}
