import type { Clock } from '@aenv/platform/clock/clock.ts';
import { Repeater } from '@aenv/platform/clock/repeater.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { SnapshotRepository } from './contract.ts';

export interface CollectorOptions {
  readonly repository: Pick<SnapshotRepository, 'gc'>;
  /** `VmRecord.memoryBase` of all VMs that run now */
  readonly memoryBases: () => Iterable<string>;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Removes at an interval what removed snapshots shared and nobody needs any more: bases of forks and of pauses. */
export function collectSnapshots({ repository, memoryBases, intervalMs, clock, log }: CollectorOptions): Repeater {
  return new Repeater({
    ...{ intervalMs, clock },
    work: async () => {
      const report = await repository.gc({ memoryBases });
      if (report.blockedBy.length > 0) log.warn('snapshots cannot be read: nothing is removed', { ...report });
      else if (report.freedBytes > 0) log.info('what no snapshot needs was removed', { ...report });
    },
    onError: (error) => log.error('what no snapshot needs could not be removed', { error }),
  });
}
