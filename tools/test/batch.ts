/**
 * Runs several test files in this process, each as a suite that bears its name: a process for each costs more than most of
 * the tests do. What a file does to its process, others see; those that cannot share one say so in their name (suites.ts).
 *
 * Arguments: the test files.
 */
import { resolve } from 'node:path';
import { suite } from 'node:test';

for (const file of process.argv.slice(2)) {
  suite(file, async () => {
    await import(resolve(file));
  });
}
