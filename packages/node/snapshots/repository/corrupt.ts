import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** A part of a snapshot is not what was written. `artefact` names it for people, as `memory delta of snapshot x`. */
export function corrupt(artefact: string, problem: string, cause?: unknown): AenvError {
  return new AenvError('snapshot_corrupt', `the ${artefact} is damaged: ${problem}`, { cause });
}

/** The faults of layers, which deltas are written as, become those of snapshots; others stay what they are. */
export function asCorrupt(artefact: string, error: unknown): unknown {
  const isDamage = error instanceof AenvError && error.code === 'layer_corrupt';
  return isDamage ? corrupt(artefact, error.message, error) : error;
}
