import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, type ProcessIdentity } from '@aenv/platform/process/identity.ts';
import { z } from 'zod';

/** What a running daemon says of itself in `$runtime/daemon.json`. */
export interface DaemonState {
  readonly process: ProcessIdentity;
  /** base URL of the API, the port filled in */
  readonly url: string;
}

const stateSchema = z.object({
  pid: z.number().int().positive(),
  startTime: z.number().int().nonnegative(),
  url: z.url(),
});

export function stateFile(runtime: string): string {
  return join(runtime, 'daemon.json');
}

/** The daemon of a runtime folder, or undefined when none runs; a file that a crash left counts as none. */
export async function findDaemon(runtime: string): Promise<DaemonState | undefined> {
  let text: string;
  try {
    text = await readFile(stateFile(runtime), 'utf8');
  } catch {
    return undefined;
  }
  const parsed = stateSchema.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { pid, startTime, url } = parsed.data;
  const state = { process: { pid, startTime }, url };
  return (await isAlive(state.process)) ? state : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether the API answers on its health route within `limitMs`. */
export async function isHealthy(url: string, limitMs = 3000): Promise<boolean> {
  try {
    const response = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(limitMs) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
