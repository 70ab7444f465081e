import { appendFile, readFile } from 'node:fs/promises';

/**
 * Tests of several processes note here which kernels they saw running, so that the run can prove at its end that virtual
 * machines booted and that no two shared a kernel. Without AENV_TEST_BOOTS (a single test run by hand) nothing is kept.
 */
export async function recordBoot(bootId: string): Promise<void> {
  const file = process.env.AENV_TEST_BOOTS;
  if (file !== undefined) await appendFile(file, `${bootId.trim()}\n`);
}

/** All boot ids noted so far, in order. */
export async function readBoots(): Promise<string[]> {
  const file = process.env.AENV_TEST_BOOTS;
  if (file === undefined) return [];
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}
