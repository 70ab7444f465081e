import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { LiveSandbox } from '../live/live-sandbox.ts';
import type { LiveSandboxes } from '../live/live-sandboxes.ts';

export interface ComebackOptions {
  readonly sandboxes: LiveSandboxes;
  /** resumes it in its turn, unless it runs already or was paused for good meanwhile */
  readonly wake: (live: LiveSandbox) => Promise<void>;
  /** resumes at the same time */
  readonly concurrency: number;
  readonly log: Logger;
}

/**
 * Lets go on what the shutdown before paused, the longest-standing first, while the API serves already: whoever asks for
 * one of them, or sends traffic to it, has it resumed at once. One that does not come back stays paused.
 */
export async function bringBack({ sandboxes, wake, concurrency, log }: ComebackOptions): Promise<void> {
  const queue = sandboxes
    .all()
    .filter(comesBack)
    .sort((a, b) => a.record.startedAt.getTime() - b.record.startedAt.getTime());
  if (queue.length === 0) return;
  log.info('what the shutdown paused goes on', { sandboxes: queue.length });
  const worker = async () => {
    for (let live = queue.shift(); live !== undefined; live = queue.shift()) {
      const { id } = live;
      await wake(live).catch((error: unknown) => {
        const { code } = AenvError.from(error);
        if (code === 'shutting_down' || code === 'sandbox_not_found') return;
        log.error('a sandbox that ran before the restart does not come back, and stays paused', {
          sandboxId: id,
          error,
        });
      });
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/** Whether it is paused only because a daemon was shut down. */
export function comesBack(live: LiveSandbox): boolean {
  return live.lifecycle.state === 'paused' && live.record.checkpoint?.leftMs !== undefined;
}
