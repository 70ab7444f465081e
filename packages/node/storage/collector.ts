import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import { Repeater } from '@aenv/platform/clock/repeater.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { StorageService } from './contract.ts';

export interface StorageCollectorOptions {
  readonly storage: Pick<StorageService, 'collect'>;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Removes at an interval what nobody has needed for long. */
export function collectStorage({ storage, intervalMs, clock, log }: StorageCollectorOptions): Repeater {
  return new Repeater({
    ...{ intervalMs, clock },
    work: async () => void (await storage.collect()),
    onError: (error) => {
      const isBusy = error instanceof AenvError && error.code === 'storage_busy';
      if (isBusy) log.debug('assets are in use: they are looked at again later');
      else log.error('what nobody needs could not be removed', { error });
    },
  });
}
