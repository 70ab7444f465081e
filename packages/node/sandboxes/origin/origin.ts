import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { SnapshotCatalog } from '../../snapshots/catalog/contract.ts';
import type { SnapshotRecord } from '../../store/snapshot-record.ts';
import type { Template, TemplateService } from '../../templates/contract.ts';
import type { SandboxShape } from '../new-record.ts';

/** What a new sandbox begins as. */
export type Origin =
  | { readonly kind: 'template'; readonly template: Template }
  | { readonly kind: 'snapshot'; readonly snapshot: SnapshotRecord };

export interface Origins {
  readonly templates: Pick<TemplateService, 'resolve'>;
  readonly snapshots: Pick<SnapshotCatalog, 'find'>;
}

/**
 * What a reference means: a template, or else a snapshot.
 * @throws AenvError `template_not_found`, `invalid_request`
 */
export function resolveOrigin({ templates, snapshots }: Origins, reference: string): Origin {
  try {
    return { kind: 'template', template: templates.resolve(reference) };
  } catch (error) {
    if (!(error instanceof AenvError) || error.code !== 'template_not_found') throw error;
    const snapshot = snapshots.find(reference);
    if (snapshot === undefined) throw error;
    return { kind: 'snapshot', snapshot };
  }
}

/** What a sandbox takes over of it. */
export function shapeOf(origin: Origin): SandboxShape {
  if (origin.kind === 'template') return origin.template;
  const { name, ...shape } = origin.snapshot;
  return { ...shape, aliases: name === undefined ? [] : [name.alias] };
}
