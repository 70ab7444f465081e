import { randomUUID } from 'node:crypto';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { randomName } from '../sandboxes/identity.ts';
import type { TemplateLedger } from '../store/template-ledger.ts';
import type { StartState, Template, TemplateSource } from './contract.ts';

export const BASE_ALIAS = 'base';
/** Size of what `base` starts; the disk is sparse. */
export const BASE_SIZE = { cpuCount: 1, memoryMb: 512, diskSizeMb: 10 * 1024 } as const;

export interface BaseOptions {
  readonly ledger: TemplateLedger;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What was built for `base`. */
export interface BaseBuild {
  readonly source: TemplateSource;
  readonly start: StartState;
  readonly envdVersion: string;
}

/**
 * Makes the template `base` stand for what was built. Its id stays for as long as the home folder does; another root
 * file system gives it a new build id, and sandboxes that already run keep the disk that they were started from.
 */
export function registerBase({ ledger, clock, log }: BaseOptions, build: BaseBuild): Template {
  const before = ledger.byAlias(BASE_ALIAS);
  const now = new Date(clock.now());
  const template: Template = {
    templateId: before?.templateId ?? randomName(20),
    buildId: before !== undefined && isSame(before, build) ? before.buildId : randomUUID(),
    aliases: before?.aliases ?? [BASE_ALIAS],
    ...BASE_SIZE,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    lastSpawnedAt: before?.lastSpawnedAt ?? null,
    spawnCount: before?.spawnCount ?? 0,
    ...build,
  };
  if (before?.buildId === template.buildId) return before;
  ledger.put(template);
  log.info('template registered', { template: BASE_ALIAS, templateId: template.templateId, buildId: template.buildId });
  return template;
}

function isSame(template: Template, build: BaseBuild): boolean {
  const fields = ({ source, start, envdVersion }: BaseBuild) =>
    JSON.stringify([
      source.imageDigest,
      source.layers,
      Object.entries(start.envVars).sort(),
      start.user,
      start.workdir,
      envdVersion,
    ]);
  return fields(template) === fields(build) && template.memoryMb === BASE_SIZE.memoryMb;
}
