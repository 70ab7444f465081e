import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import type { HookResult, RestoreEvent } from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { EnvdClient, InitAnswer } from '../envd-client/envd-client.ts';
import type { Stopwatch } from '../launch/phases.ts';
import { settle } from './settle.ts';

export interface GuestRestore {
  readonly event: RestoreEvent;
  readonly init: InitRequest;
  /** of the guest that was captured */
  readonly oldSecret: string;
  /** that it has from now on */
  readonly hostSecret: string;
  readonly stopwatch: Stopwatch;
  readonly signal: AbortSignal;
}

export interface RestoreLimits {
  /** `ms` until the guest has answered and its programs go on; one that was captured while it ran does so at once */
  readonly guestMs: number;
  /** `ms` for all hooks together */
  readonly hooksMs: number;
}

export interface RestoredGuest {
  readonly answer: InitAnswer;
  /** what came of its hooks, in their order */
  readonly hooks: readonly HookResult[];
}

/**
 * The steps between the first instruction of a captured guest and the moment at which it counts as running, the same for
 * every VMM and every reason to continue one:
 *
 *   settle   time and entropy, access (its new secret, tokens, variables), identity; then connections from outside are
 *            broken, and programs of the user, which stood still until now, go on. Its answer is the ping. An envd that was
 *            captured before all of this was one call lets them go on with a second one, `unfreeze`
 *   hooks    where the guest has any
 *
 * What a hook does wrong is told and stops nothing.
 * @throws AenvError `boot_failed`, `restore_failed`; the signal's reason
 */
export async function restoreGuest(
  envd: Pick<EnvdClient, 'init' | 'unfreeze' | 'runHooks'>,
  { event, init, oldSecret, hostSecret, stopwatch, signal }: GuestRestore,
  limits: RestoreLimits,
): Promise<RestoredGuest> {
  const limit = AbortSignal.timeout(limits.guestMs);
  const answering = { stopwatch, signal: AbortSignal.any([signal, limit]) };
  let answer: InitAnswer;
  let count: number;
  try {
    // A call whose answer was lost has changed the secret already.
    const secrets = [oldSecret, hostSecret];
    answer = await settle(envd, { ...init, event, hostSecret, letGo: true }, { ...answering, secrets });
    count =
      answer.hooks ?? (await stopwatch.time('unfreeze', () => envd.unfreeze(hostSecret, { event }, answering.signal)));
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) throw new AenvError('restore_failed', 'the guest did not answer in time', { cause: error });
    throw error;
  }
  if (count === 0) return { answer, hooks: [] };
  const request = { event, timeoutMs: limits.hooksMs };
  const hooks = await stopwatch.time('hooks', () =>
    envd.runHooks(hostSecret, request, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      return [noAnswer(error)];
    }),
  );
  return { answer, hooks };
}

function noAnswer(error: unknown): HookResult {
  const status = `nothing was heard of them: ${error instanceof Error ? error.message : String(error)}`;
  return { name: '*', ok: false, status, ms: 0, output: '' };
}
