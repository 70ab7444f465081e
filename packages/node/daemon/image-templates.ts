import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses } from '../assets/contract.ts';
import { assetPlaces } from '../assets/places.ts';
import type { Config } from '../config/schema.ts';
import type { Ledger } from '../store/ledger.ts';
import { BASE } from '../templates/base.ts';
import type { TemplateBuilds } from '../templates/builds/contract.ts';
import { BUILTINS } from '../templates/builtin/builtins.ts';
import type { TemplateService } from '../templates/contract.ts';
import { NodeDriveImages } from '../templates/drives/drive-images.ts';
import { NodeImageTemplates } from '../templates/pull/image-templates.ts';
import { createPull, type PullPlaces } from '../templates/pull/pull.ts';

export interface ImageTemplateParts {
  readonly config: Config;
  readonly ledger: Ledger;
  readonly layerSources: PullPlaces['layerSources'];
  readonly templates: TemplateService;
  readonly builtin: TemplateBuilds;
  readonly uses: AssetUses;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface NodeImages {
  readonly templates: NodeImageTemplates;
  readonly drives: NodeDriveImages;
}

/** Templates and drives from images, as the node's configuration says. What an interrupted pull has fetched ahead is removed. */
export async function openImages(parts: ImageTemplateParts): Promise<NodeImages> {
  const { config, layerSources, ...rest } = parts;
  const spool = join(config.home, 'pull');
  const { layers, images } = assetPlaces(config.assets);
  await rm(spool, { recursive: true, force: true });
  const pull = createPull(config, { layers, images, spool, layerSources });
  const templates = new NodeImageTemplates({
    ...rest,
    reserved: [BASE.alias, ...Object.values(BUILTINS).map(({ template }) => template.alias)],
    pull,
    envdVersion: ENVD_VERSION,
  });
  return { templates, drives: new NodeDriveImages({ pull, uses: parts.uses, log: parts.log }) };
}
