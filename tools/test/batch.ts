/**
 * Runs several test files in this process, each as a suite that bears its name: a process for each costs more than most of
 * the tests do. What a file does to its process, others see; those that cannot share one say so in their name (suites.ts).
 * With AENV_TEST_COSTS, a file, each one adds a line to it: ms of the processor of this process and of its children.
 *
 * Arguments: the test files.
 */
import './test-context.ts';
import { appendFileSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

// Only now: node:test is to find what test-context.ts has changed.
const { after, suite } = await import('node:test');
const costs = process.env.AENV_TEST_COSTS;
let before = used();

for (const file of process.argv.slice(2)) {
  suite(file, async () => {
    if (costs !== undefined) after(() => tellCosts(costs, file));
    await import(resolve(file));
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
