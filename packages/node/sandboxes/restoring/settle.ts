import type { InitRequest } from '@aenv/contracts/envd/host-api.ts';
import type { EnvdClient, InitAnswer } from '../envd-client/envd-client.ts';
import type { Stopwatch } from '../launch/phases.ts';

/**
 * The first thing that a guest hears, booted or continued: what time it is, entropy, its secret, who it is, and that
 * connections of its past are over. One call, in this order, each step timed by the guest.
 * @param secrets that the guest may ask for, the likeliest first
 * @throws as `EnvdClient.init`
 */
export async function settle(
  envd: Pick<EnvdClient, 'init'>,
  request: InitRequest,
  {
    secrets,
    stopwatch,
    signal,
  }: {
    readonly secrets: readonly string[];
    readonly stopwatch: Stopwatch;
    readonly signal: AbortSignal;
  },
): Promise<InitAnswer> {
  const answer = await stopwatch.time('settle', () => envd.init(request, secrets, signal));
  for (const [step, ms] of Object.entries(answer.steps)) stopwatch.note(`settle.${step}`, ms);
  return answer;
}
