import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { isTransient } from '../../registry/http/failures.ts';
import type { RangeOrigin } from './origin.ts';

export interface PatienceOptions {
  readonly clock: Clock;
  /** `ms` without any success after which a read fails */
  readonly offlineAfterMs: number;
  /** `ms` that one attempt may take */
  readonly attemptMs: number;
  /** ends all attempts */
  readonly signal: AbortSignal;
}

const FIRST_WAIT_MS = 100;
const MAX_WAIT_MS = 3000;
const MIN_ATTEMPT_MS = 500;
/** Attempts at something that is refused or wrong, in case that it was a slip. */
const REFUSALS = 3;

/**
 * Asks the origins of one blob again and again while the network is away, until it has been away for too long. Once it is
 * known to be away for that long, a read makes one attempt and fails at once.
 */
export class PatientFetch {
  readonly #options: PatienceOptions;
  #downSince: number | undefined;

  constructor(options: PatienceOptions) {
    this.#options = options;
  }

  /**
   * @param origins asked anew for each attempt
   * @throws AenvError `layer_unavailable`; `layer_corrupt` when the origins keep giving other bytes (`digest_mismatch`)
   */
  async run(
    origins: () => readonly RangeOrigin[],
    action: (origin: RangeOrigin, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock, offlineAfterMs, signal } = this.#options;
    let refusals = 0;
    for (let attempt = 0; ; attempt++) {
      signal.throwIfAborted();
      const list = origins();
      const origin = list[attempt % Math.max(1, list.length)];
      if (origin === undefined)
        throw new AenvError('layer_unavailable', 'nobody knows where the layer could be read from');
      try {
        await this.#attempt(origin, action);
        this.#downSince = undefined;
        return;
      } catch (error) {
        signal.throwIfAborted();
        this.#downSince ??= clock.now();
        const left = this.#downSince + offlineAfterMs - clock.now();
        if (!isTransient(error)) refusals++;
        if (left <= 0 || refusals >= REFUSALS * list.length) throw failure(origin, error);
        const wait = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10));
        await clock.sleep(Math.min(left, wait * (0.5 + Math.random() / 2)), signal);
      }
    }
  }

  async #attempt(
    origin: RangeOrigin,
    action: (origin: RangeOrigin, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock, offlineAfterMs, attemptMs, signal } = this.#options;
    const left = this.#downSince === undefined ? offlineAfterMs : this.#downSince + offlineAfterMs - clock.now();
    const limit = AbortSignal.timeout(Math.max(MIN_ATTEMPT_MS, Math.min(attemptMs, left)));
    try {
      await action(origin, AbortSignal.any([signal, limit]));
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
      throw new AenvError('registry_unavailable', `${origin.name}: did not answer in time`, { cause: error });
    }
  }
}

function failure(origin: RangeOrigin, error: unknown): AenvError {
  if (error instanceof AenvError && error.code === 'digest_mismatch') {
    return new AenvError('layer_corrupt', error.message, { cause: error });
  }
  const why = error instanceof AenvError ? error.message : 'the request failed';
  return new AenvError('layer_unavailable', `a part of a layer is not to be had: ${why}`, {
    cause: error,
    details: { origin: origin.name },
  });
}
