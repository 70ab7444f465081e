import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses } from '../assets/contract.ts';
import type { Config } from '../config/schema.ts';
import type { SnapshotRepository } from '../snapshots/contract.ts';
import { collectStorage } from '../storage/collector.ts';
import type { StorageService } from '../storage/contract.ts';
import { NodeStorage } from '../storage/service.ts';
import type { Ledger } from '../store/ledger.ts';
import { removeUnusedColdTemplates } from '../templates/pull/cold-templates.ts';
import type { StartPoints } from './snapshots.ts';

export interface StorageServiceParts {
  readonly config: Config;
  readonly uses: AssetUses;
  readonly ledger: Pick<Ledger, 'templates' | 'sandboxes'>;
  readonly startPoints: StartPoints;
  readonly repository: SnapshotRepository;
  /** `VmRecord.memoryBase` of all VMs that run now */
  readonly memoryBases: () => Iterable<string>;
  readonly clock: Clock;
  readonly log: Logger;
}

const HOUR_MS = 3_600_000;
/** Others may pull an image for minutes; a client need not wait for that. */
const WAIT_MS = 10_000;

/** What this node keeps, and the removal of what nobody needs, once an hour. */
export function openStorageService(parts: StorageServiceParts): {
  readonly service: StorageService;
  close(): Promise<void>;
} {
  const { config, uses, ledger, startPoints, repository, memoryBases, clock, log } = parts;
  const service = new NodeStorage({
    ...{ assetsDir: config.assets, home: config.home, uses, waitMs: WAIT_MS, clock, log },
    keepMs: config.storage.keepUnusedHours * HOUR_MS,
    templates: () => ledger.templates.versions(),
    own: {
      unnamedTemplates: (before) => removeUnusedColdTemplates(ledger, before),
      machines: () => startPoints.keepOnly(ledger.templates.versions()),
      snapshots: () => repository.gc({ memoryBases }),
    },
  });
  const repeater = collectStorage({ storage: service, intervalMs: HOUR_MS, clock, log });
  return { service, close: () => repeater.close() };
}
