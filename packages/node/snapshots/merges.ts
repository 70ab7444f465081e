import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { SnapshotRepository } from './contract.ts';
import type { DiskSpace } from './disk-space.ts';

export interface MergesOptions {
  readonly repository: Pick<SnapshotRepository, 'mergeDelta'>;
  readonly space: Pick<DiskSpace, 'reserve'>;
  /** is waited for before each part */
  readonly pace: () => Promise<void>;
  readonly log: Logger;
}

/**
 * Deltas that become part of a base, one at a time and behind everything that somebody waits for. One that is not reached
 * before the end of the daemon stays a delta, which is slower to start and nothing else.
 */
export class Merges {
  readonly #options: MergesOptions;
  /** bytes that their bases may take, by id */
  readonly #waiting = new Map<string, number>();
  #running: Promise<void> | undefined;

  constructor(options: MergesOptions) {
    this.#options = options;
  }

  /** @param bytes that the base may take */
  add(id: string, bytes: number): void {
    this.#waiting.set(id, bytes);
    this.#running ??= this.#run();
  }

  /** Resolves when there is nothing left to do. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Waits for the one that is under way; the others are given up. */
  async close(): Promise<void> {
    this.#waiting.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { repository, space, pace, log } = this.#options;
    for (const [id, bytes] of this.#waiting) {
      this.#waiting.delete(id);
      try {
        using _room = await space.reserve(bytes, 'a memory base');
        await repository.mergeDelta(id, pace);
      } catch (error) {
        // It was started, and so removed, before its turn came.
        if (error instanceof AenvError && error.code === 'snapshot_not_found') continue;
        log.warn('the memory of a snapshot could not be merged; it is started as before', { id, error });
      }
    }
    this.#running = undefined;
  }
}
