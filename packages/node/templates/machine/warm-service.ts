import { exchange } from '../../sandboxes/envd-client/request.ts';
import type { ReadyCheck } from '../contract.ts';

const CONNECT_MS = 5_000;
/** Under emulation, loading large libraries takes half a minute. */
const WARM_MS = 5 * 60_000;

/**
 * Has the server of a guest load what its clients will need, where the template says how. One that cannot is captured
 * as it is: everything works, only later.
 */
export async function warmService(address: string, ready: ReadyCheck | undefined, signal: AbortSignal): Promise<void> {
  if (ready?.kind !== 'http' || ready.warmPath === undefined) return;
  const limits = { connectTimeoutMs: CONNECT_MS, timeoutMs: WARM_MS };
  try {
    await exchange(address, ready.port, { method: 'GET', path: ready.warmPath, ...limits, signal });
  } catch {
    signal.throwIfAborted();
  }
}
