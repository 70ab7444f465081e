import { setTimeout as delay } from 'node:timers/promises';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ProcessEnd } from './process.ts';
import { QmpClient } from './qmp/client.ts';

/** One attempt; a cancelled wait ends with it. */
const ATTEMPT_MS = 2_000;

/**
 * Connects to the control socket of a QEMU that may still be starting.
 * @param ended ends the wait early when the process does
 * @throws AenvError `vm_died` when it ended or did not answer within `timeoutMs`; the reason of `signal`
 */
export async function connectQmp(
  path: string,
  ended: Promise<ProcessEnd> | undefined,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<QmpClient> {
  const deadline = Date.now() + timeoutMs;
  let end: ProcessEnd | undefined;
  let failure: unknown;
  ended?.then(
    (value) => {
      end = value;
    },
    (error) => {
      failure = error;
    },
  );
  for (;;) {
    signal?.throwIfAborted();
    if (failure !== undefined) throw failure;
    if (end !== undefined) {
      const how = end.signal === null ? `exit code ${end.code}` : end.signal;
      throw new AenvError('vm_died', `QEMU ended at once (${how})`);
    }
    try {
      return await QmpClient.connect(path, Math.min(ATTEMPT_MS, Math.max(1, deadline - Date.now())));
    } catch (error) {
      if (Date.now() >= deadline) throw error;
    }
    await delay(8, undefined, signal === undefined ? {} : { signal });
  }
}
