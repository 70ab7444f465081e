import { readFile } from 'node:fs/promises';
import { isAlive, type ProcessIdentity } from '@aenv/platform/process/identity.ts';
import { z } from 'zod';

const State = z.object({
  pid: z.int().positive(),
  startTime: z.int().nonnegative(),
  protocol: z.int(),
  version: z.string(),
});

/** What a block daemon says of itself in its runtime folder. */
export interface BlockdState {
  readonly process: ProcessIdentity;
  readonly protocol: number;
  readonly version: string;
}

export function formatState({ process, protocol, version }: BlockdState): string {
  return `${JSON.stringify({ ...process, protocol, version })}\n`;
}

/** The daemon that a state file tells of; undefined when it does not run any more. */
export async function findBlockd(path: string): Promise<BlockdState | undefined> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch {
    return undefined;
  }
  const parsed = State.safeParse(value);
  if (!parsed.success) return undefined;
  const { pid, startTime, protocol, version } = parsed.data;
  return (await isAlive({ pid, startTime })) ? { process: { pid, startTime }, protocol, version } : undefined;
}
