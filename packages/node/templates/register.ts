import { randomUUID } from 'node:crypto';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import { randomName } from '../sandboxes/identity.ts';
import type { TemplateLedger } from '../store/template-ledger.ts';
import type { StartState, Template, TemplateSource } from './contract.ts';

export interface RegisterOptions {
  readonly ledger: TemplateLedger;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A template that the product brings: its name, and what sandboxes of it get. */
export interface BuiltinTemplate {
  readonly alias: string;
  readonly cpuCount: number;
  readonly memoryMb: number;
  /** sparse */
  readonly diskSizeMb: number;
}

/** What was built for a template. */
export interface TemplateBuild {
  readonly source: TemplateSource;
  readonly start: StartState;
  readonly envdVersion: string;
}

/** Ids that a new template or a new build of one get. */
export interface FreshIds {
  readonly templateId: string;
  readonly buildId: string;
}

/**
 * Makes a built-in template stand for what was built. Its id stays for as long as the home folder does; what is not the
 * same as before gets another build id, and sandboxes that already run keep the disk that they were started from.
 */
export function registerBuiltin(
  { ledger, clock, log }: RegisterOptions,
  { alias, ...size }: BuiltinTemplate,
  build: TemplateBuild,
  fresh: FreshIds = { templateId: randomName(20), buildId: randomUUID() },
): Template {
  const before = ledger.byAlias(alias);
  if (before !== undefined && isSame(before, size, build)) return before;
  const now = new Date(clock.now());
  const template: Template = {
    templateId: before?.templateId ?? fresh.templateId,
    buildId: fresh.buildId,
    aliases: before?.aliases ?? [alias],
    ...size,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    lastSpawnedAt: before?.lastSpawnedAt ?? null,
    spawnCount: before?.spawnCount ?? 0,
    ...build,
  };
  ledger.put(template);
  log.info('template registered', { template: alias, templateId: template.templateId, buildId: template.buildId });
  return template;
}

function isSame(before: Template, size: Omit<BuiltinTemplate, 'alias'>, build: TemplateBuild): boolean {
  const sorted = (object: object = {}) => Object.entries(object).sort();
  const fields = ({ source, start, envdVersion }: TemplateBuild) =>
    JSON.stringify([
      ...[source.imageDigest, source.layers, start.user, start.workdir, envdVersion],
      ...[sorted(start.envVars), sorted(start.startCommand), sorted(start.ready)],
    ]);
  const sizes = (of: Omit<BuiltinTemplate, 'alias'>) => [of.cpuCount, of.memoryMb, of.diskSizeMb].join();
  return sizes(before) === sizes(size) && fields(before) === fields(build);
}
