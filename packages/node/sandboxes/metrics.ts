import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import { LIVE_STATES } from '../store/sandbox-record.ts';
import type { EndReason } from './contract.ts';
import type { Phases } from './launch/phases.ts';
import type { LiveSandboxes } from './live/live-sandboxes.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 60];

/** What the lifecycle counts. No series names a sandbox, so none outlives one. */
export class SandboxMetrics {
  readonly #states;
  readonly #creates;
  readonly #phases;
  readonly #ends;
  readonly #leftovers;

  constructor(metrics: Metrics) {
    this.#states = metrics.gauge('aenv_sandboxes', 'Sandboxes by state.', ['state']);
    this.#creates = metrics.counter('aenv_sandbox_creates_total', 'Creates by result.', ['result']);
    this.#phases = metrics.histogram(
      'aenv_sandbox_create_seconds',
      'Time of a successful create by phase; `total` is all of it.',
      SECONDS,
      ['phase'],
    );
    this.#ends = metrics.counter('aenv_sandbox_ends_total', 'Sandboxes that are over, by reason.', ['reason']);
    this.#leftovers = metrics.counter(
      'aenv_sandbox_release_failures_total',
      'Sandboxes of which something could not be removed.',
    );
  }

  observeStates(sandboxes: LiveSandboxes): void {
    for (const state of LIVE_STATES) this.#states.set(sandboxes.count(state), { state });
  }

  created(phases: Phases): void {
    this.#creates.add(1, { result: 'ok' });
    for (const [phase, ms] of Object.entries(phases)) this.#phases.observe(ms / 1000, { phase });
  }

  /** @param result code of the error */
  createFailed(result: string): void {
    this.#creates.add(1, { result });
  }

  ended(reason: EndReason): void {
    this.#ends.add(1, { reason });
  }

  releaseFailed(): void {
    this.#leftovers.add();
  }
}
