import type { SandboxRecord } from '../../store/sandbox-record.ts';

/** What a sandbox that traffic resumed lives at least, and what one lives whose row does not say how it was made. */
const [LEAST, UNKNOWN] = [60, 300];

/** How long a sandbox that traffic resumes lives on: as long as was asked for when it was made, at least a little. */
export function wakeSeconds({ timeoutSeconds = UNKNOWN }: Pick<SandboxRecord, 'timeoutSeconds'>): number {
  return Math.max(timeoutSeconds, LEAST);
}
