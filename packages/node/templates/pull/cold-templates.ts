import { createHash } from 'node:crypto';
import type { Ledger } from '../../store/ledger.ts';
import type { Template } from '../contract.ts';
import { diskLayers } from '../layers.ts';

/** Id of the template without a name that a sandbox boots: the same for the same image and sizes. Ids are letters and digits. */
export function coldId(template: Pick<Template, 'source' | 'start' | 'diskSizeMb' | 'cpuCount' | 'memoryMb'>): string {
  const { source, start, diskSizeMb, cpuCount, memoryMb } = template;
  const inputs = [diskLayers(source), source.imageDigest, start, diskSizeMb, cpuCount, memoryMb];
  return createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 20);
}

/**
 * Removes templates without a name that no sandbox has, and none has started from since `before`, in `ms`.
 * @returns how many
 */
export function removeUnusedColdTemplates(ledger: Pick<Ledger, 'templates' | 'sandboxes'>, before: number): number {
  const used = new Set(ledger.sandboxes.live().map(({ templateId }) => templateId));
  const unused = ledger.templates.list().filter((template) => {
    const { templateId, aliases, updatedAt, lastSpawnedAt } = template;
    const isCold = aliases.length === 0 && templateId === coldId(template);
    return isCold && !used.has(templateId) && (lastSpawnedAt ?? updatedAt).getTime() < before;
  });
  for (const { templateId } of unused) ledger.templates.remove(templateId);
  return unused.length;
}
