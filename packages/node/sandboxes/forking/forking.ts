import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { SandboxRecord } from '../../store/sandbox-record.ts';
import { captureInPassing } from '../checkpoints/capture-in-passing.ts';
import type { Captured, Checkpoints } from '../checkpoints/contract.ts';
import type { Fork, ForkOptions } from '../contract.ts';
import type { Ending } from '../ending.ts';
import { type LifecycleFaults, noLifecycleFaults } from '../faults.ts';
import { newCheckpointId } from '../identity.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { SandboxMetrics } from '../metrics.ts';
import { childRecord } from '../new-record.ts';
import type { SandboxObserver } from '../observe/contract.ts';
import { captureOf, machineOf } from '../pausing/pausing.ts';
import type { Starting } from '../starting/starting.ts';

export interface ForkingOptions {
  readonly checkpoints: Checkpoints;
  readonly starting: Starting;
  readonly ending: Ending;
  readonly observer: Pick<SandboxObserver, 'starting'>;
  readonly metrics: SandboxMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: { readonly maxConcurrentStarts: number };
  readonly faults?: LifecycleFaults;
  /** @throws AenvError why the state of the sandbox does not allow it */
  readonly requireRunning: (live: LiveSandbox) => void;
  /** @throws AenvError `capacity_exhausted`, `shutting_down` */
  readonly admit: (memoryMb: number) => void;
  /** writes the row of a new sandbox and makes it known; right after `admit` */
  readonly enter: (record: SandboxRecord) => LiveSandbox;
}

/** How sandboxes are branched: the source is captured once, and each child continues what was captured. */
export class Forking {
  readonly #options: ForkingOptions;

  constructor(options: ForkingOptions) {
    this.#options = options;
  }

  /**
   * One entry for each child that was asked for. The source stands still for the capture only. What was captured goes when
   * all children run; each keeps what it needs of it.
   * @throws AenvError when no child was attempted
   */
  async fork(source: LiveSandbox, { count, timeoutSeconds }: ForkOptions): Promise<readonly Fork[]> {
    const { checkpoints, clock, limits, log, faults = noLifecycleFaults } = this.#options;
    const id = newCheckpointId();
    const begin = clock.now();
    const { parent, captured } = await source.exclusive(() => this.#capture(source, id, count));
    try {
      await faults.hit('fork.captured');
      const forks: Fork[] = [];
      let next = 0;
      // No more at a time than may start at a time: children of one call never crowd each other out of the queue.
      const worker = async () => {
        while (next < count) {
          const place = next++;
          forks[place] = await this.#child(parent, id, timeoutSeconds);
        }
      };
      await Promise.all(Array.from({ length: Math.min(count, limits.maxConcurrentStarts) }, worker));
      const failed = forks.filter((fork) => 'error' in fork).length;
      log.info('sandbox forked', {
        sandboxId: source.id,
        count,
        failed,
        ms: { ...captured.ms, total: clock.now() - begin },
      });
      return forks;
    } finally {
      await checkpoints.remove(id).catch((error: unknown) => {
        log.error('the checkpoint of a fork could not be removed', { sandboxId: source.id, error });
      });
      await faults.hit('fork.checkpoint_removed');
    }
  }

  /** @returns the source as it was when it was captured */
  async #capture(
    source: LiveSandbox,
    id: string,
    count: number,
  ): Promise<{ readonly parent: SandboxRecord; readonly captured: Captured }> {
    const { requireRunning, admit } = this.#options;
    requireRunning(source);
    const { record } = source;
    // Refused before anything is half made, if not even one fits.
    admit(record.memoryMb);
    const request = captureOf(source, machineOf(source), id, 'fork', 'go_on');
    const captured = await captureInPassing(this.#options, source, { ...request, continued: count });
    return { parent: record, captured };
  }

  /** Its environment is in its memory; all that names it or lets somebody in is new. */
  async #child(parent: SandboxRecord, checkpoint: string, timeoutSeconds: number): Promise<Fork> {
    const { admit, enter, starting, ending, clock, metrics, faults = noLifecycleFaults } = this.#options;
    try {
      admit(parent.memoryMb);
      const live = enter(childRecord(parent, timeoutSeconds, clock.now()));
      const { envdAccessToken, templateId } = live.record;
      try {
        await faults.hit('fork.child_written');
        const view = await starting.start(live, {
          was: 'creating',
          parent: parent.sandboxId,
          from: { kind: 'checkpoint', id: checkpoint, event: 'fork' },
          init: { accessToken: envdAccessToken ?? null, sandboxId: live.id, templateId, hostname: live.id },
        });
        return { view };
      } catch (error) {
        await ending.release(live, error instanceof Error ? error.message : String(error));
        throw error;
      }
    } catch (error) {
      const fault = AenvError.from(error, 'the fork could not be started');
      metrics.createFailed(fault.code);
      return { error: fault };
    }
  }
}
