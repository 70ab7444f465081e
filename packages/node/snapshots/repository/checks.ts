import { stat } from 'node:fs/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ArtefactProblem, SnapshotVerification } from '../contract.ts';

/** What was read, and what was wrong. */
export class Checks implements SnapshotVerification {
  checkedBytes = 0;
  readonly problems: ArtefactProblem[] = [];

  /** Does a check of one file; what it throws is noted. */
  async of<T>(artefact: string, path: string, check: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await check();
      this.checkedBytes += (await sizeOf(path)) ?? 0;
      return result;
    } catch (error) {
      if (error instanceof AenvError && error.code === 'snapshot_not_found') throw error;
      this.problems.push({ artefact, path, message: error instanceof Error ? error.message : String(error) });
      return undefined;
    }
  }
}

/** undefined when there is no such file */
export async function sizeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.size;
}
