import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { missingMemory } from './limits/memory.ts';
import type { LiveSandbox } from './live/live-sandbox.ts';
import type { LiveSandboxes } from './live/live-sandboxes.ts';

export interface AdmissionLimits {
  readonly maxSandboxes: number;
  /** share of a guest's memory that the host must have free, 0..1 */
  readonly memoryShare: number;
}

/**
 * Whether the node takes one more sandbox. Synchronous, so that a row can be written right after it: two creates never
 * share the last place. Paused ones hold nothing of the node; one that is resumed is not counted twice.
 * @throws AenvError `capacity_exhausted`, naming the limit
 */
export function admit(
  sandboxes: LiveSandboxes,
  limits: AdmissionLimits,
  memory: { readonly wantedMb: number; readonly availableMb: number },
  resumed?: LiveSandbox,
): void {
  const all = sandboxes.all().filter((live) => live.lifecycle.state !== 'paused' && live !== resumed);
  if (all.length >= limits.maxSandboxes) {
    throw new AenvError(
      'capacity_exhausted',
      `${all.length} sandboxes are alive, and limits.max_sandboxes is ${limits.maxSandboxes}`,
    );
  }
  const starting = all.filter((live) => live.lifecycle.state === 'creating' || live.lifecycle.state === 'resuming');
  const promisedMb = starting.reduce((sum, live) => sum + live.record.memoryMb, 0);
  const missing = missingMemory({ ...memory, promisedMb, share: limits.memoryShare });
  if (missing > 0) {
    throw new AenvError(
      'capacity_exhausted',
      `the host has ${memory.availableMb} MiB of memory available, ${missing} MiB too few for a guest of ${memory.wantedMb} MiB`,
      { remediation: 'Delete sandboxes, free memory of the host, or lower `limits.memory_share`.' },
    );
  }
}
