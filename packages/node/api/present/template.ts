import type { Template as TemplateAnswer, TemplateWithBuilds } from '@aenv/contracts/api/template.ts';
import type { Template } from '../../templates/contract.ts';

/** The only one of a node. */
export const NAMESPACE = 'default';

export function presentTemplate(template: Template): TemplateAnswer {
  return {
    ...named(template),
    ...size(template),
    buildID: template.buildId,
    buildCount: 1,
    buildStatus: 'ready',
    createdBy: null,
  };
}

/** @param versions of the template, each of them a build */
export function presentTemplateWithBuilds(template: Template, versions: readonly Template[]): TemplateWithBuilds {
  return { ...named(template), builds: versions.map(presentBuild) };
}

function presentBuild(version: Template): TemplateWithBuilds['builds'][number] {
  const time = version.updatedAt.toISOString();
  return {
    ...size(version),
    ...{ buildID: version.buildId, status: 'ready' },
    ...{ createdAt: version.createdAt.toISOString(), updatedAt: time, finishedAt: time },
  };
}

function named(template: Template) {
  return {
    templateID: template.templateId,
    public: false,
    aliases: [...template.aliases],
    names: template.aliases.map((alias) => `${NAMESPACE}/${alias}`),
    createdAt: template.createdAt.toISOString(),
    updatedAt: template.updatedAt.toISOString(),
    lastSpawnedAt: template.lastSpawnedAt?.toISOString() ?? null,
    spawnCount: template.spawnCount,
  };
}

function size(template: Template) {
  return {
    cpuCount: template.cpuCount,
    memoryMB: template.memoryMb,
    diskSizeMB: template.diskSizeMb,
    envdVersion: template.envdVersion,
  };
}
