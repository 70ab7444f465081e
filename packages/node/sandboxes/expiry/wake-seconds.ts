import type { SandboxRecord } from '../../store/sandbox-record.ts';

/** What a sandbox that traffic resumed lives at least, and at most. */
const [LEAST, MOST] = [60, 3600];

/** How long a sandbox that traffic resumes lives on: as long as it did before its last pause, within bounds. */
export function wakeSeconds({ endAt, startedAt }: Pick<SandboxRecord, 'endAt' | 'startedAt'>): number {
  return Math.min(Math.max(Math.round((endAt.getTime() - startedAt.getTime()) / 1000), LEAST), MOST);
}
