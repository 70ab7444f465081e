import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import type { Config } from '../config/schema.ts';
import type { StartPoint } from '../sandboxes/launch/launch.ts';
import type { SerialLogs } from '../sandboxes/launch/serial-logs.ts';
import { missingMemory, readAvailableMemory } from '../sandboxes/limits/memory.ts';
import { WarmPool } from '../sandboxes/warm/pool.ts';
import { type PrepareOptions, prepareStanding } from '../sandboxes/warm/prepare.ts';
import type { Template } from '../templates/contract.ts';

export interface WarmOptions extends PrepareOptions {
  readonly config: Config;
  readonly serialLogs: SerialLogs;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Machines that stand ready take memory only while there is twice what a start needs. */
const ROOM = 2;

export function createWarmPool(options: WarmOptions): WarmPool {
  const { config, serialLogs, clock, log, metrics } = options;
  const { low, high, templates, idleSeconds, answerSeconds } = config.warm;
  return new WarmPool({
    ...{ low, high, templates, clock, log, metrics },
    idleMs: idleSeconds * 1000,
    answerMs: answerSeconds * 1000,
    prepare: (key, signal) => prepareStanding(options, key, signal),
    hasRoom({ memoryMb }) {
      const demand = { wantedMb: memoryMb * ROOM, promisedMb: 0, share: config.limits.memoryShare };
      return missingMemory({ ...demand, availableMb: readAvailableMemory() }) === 0;
    },
    forget: (incarnation) => serialLogs.discard(incarnation),
  });
}

/** Has machines stand ready for a template, if it is captured. */
export function wantWarm(pool: WarmPool, template: Template, from: StartPoint): void {
  if (from.kind !== 'checkpoint') return;
  const { cpuCount, memoryMb, diskSizeMb } = template;
  pool.want({ checkpoint: from.id, quiet: from.quiet === true, cpuCount, memoryMb, diskSizeMb });
}
