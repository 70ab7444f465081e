import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { SnapshotName } from '../../store/snapshot-record.ts';
import { parseTemplateReference } from '../../templates/reference.ts';
import { NAMESPACE } from '../present/template.ts';

/**
 * A name for a new snapshot: `[namespace/]name[:tag]`.
 * @throws AenvError `invalid_request`
 */
export function newSnapshotName(text: string): SnapshotName {
  const { namespace = NAMESPACE, name, tag } = parse(text, 'body.name');
  const refuse = (why: string) => new AenvError('invalid_request', `body.name: ${why}`);
  if (namespace !== NAMESPACE) throw refuse(`the only namespace of this node is '${NAMESPACE}'`);
  // Ids are found before names.
  if (/^[a-z0-9]{20}$/.test(name)) throw refuse('it looks like the id of a snapshot');
  return { alias: name, tag };
}

/**
 * What a list is to be filtered by; undefined when nothing can match.
 * @throws AenvError `invalid_request`
 */
export function snapshotFilter(text: string): { readonly name: string; readonly tag?: string } | undefined {
  const { namespace = NAMESPACE, name, tag } = parse(text, 'query.name');
  if (namespace !== NAMESPACE) return undefined;
  return { name, ...(text.includes(':') ? { tag } : {}) };
}

function parse(text: string, field: string) {
  try {
    return parseTemplateReference(text);
  } catch (error) {
    const { message, cause } = AenvError.from(error);
    throw new AenvError('invalid_request', `${field}: ${message.replace('template reference', 'name of a snapshot')}`, {
      remediation: 'Use name, namespace/name or namespace/name:tag.',
      cause,
    });
  }
}
