import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { TemplateLedger } from '../store/template-ledger.ts';
import type { Template, TemplateService, TemplateTag } from './contract.ts';
import { DEFAULT_TAG, parseTag, parseTemplateReference, type TemplateReference } from './reference.ts';

export interface TemplatesOptions {
  readonly ledger: TemplateLedger;
  readonly clock: Clock;
  /** slug of the team that owns all templates of this node: their only namespace */
  readonly namespace: string;
}

/** The templates of this node, straight from the ledger. */
export class Templates implements TemplateService {
  readonly #options: TemplatesOptions;

  constructor(options: TemplatesOptions) {
    this.#options = options;
  }

  list(): readonly Template[] {
    return this.#options.ledger.list();
  }

  resolve(text: string): Template {
    const reference = parseTemplateReference(text);
    const { templateId } = this.#whole(reference);
    const template = this.#options.ledger.tagged(templateId, reference.tag);
    if (template !== undefined) return template;
    throw new AenvError(
      'template_not_found',
      `tag '${reference.tag}' does not exist for template '${reference.shown}'`,
    );
  }

  find(text: string): Template {
    const reference = parseTemplateReference(text);
    return reference.isTagged ? this.resolve(text) : this.#whole(reference);
  }

  versions(text: string): readonly Template[] {
    return this.#options.ledger.versions(this.find(text).templateId);
  }

  tags(text: string): readonly TemplateTag[] {
    return this.#options.ledger.tags(this.find(text).templateId);
  }

  assignTags(target: string, wanted: readonly string[]) {
    const { ledger, clock } = this.#options;
    const tags = [...new Set(wanted.map(parseTag))];
    const { templateId, buildId } = this.resolve(target);
    ledger.assignTags(templateId, buildId, tags, new Date(clock.now()));
    return { buildId, tags };
  }

  removeTags(text: string, unwanted: readonly string[]): void {
    const { ledger } = this.#options;
    const reference = parseTemplateReference(text);
    const tags = new Set(unwanted.map(parseTag));
    if (tags.has(DEFAULT_TAG)) throw new AenvError('invalid_request', `the tag '${DEFAULT_TAG}' cannot be removed`);
    const { templateId } = this.#whole(reference);
    const known = ledger.tags(templateId).map(({ tag }) => tag);
    const missing = [...tags].find((tag) => !known.includes(tag));
    if (missing !== undefined) {
      throw new AenvError('template_not_found', `tag '${missing}' does not exist for template '${reference.shown}'`);
    }
    if (known.every((tag) => tags.has(tag))) {
      throw new AenvError('invalid_request', `template '${reference.shown}' would have no tag left`, {
        remediation: 'Remove the template, or give it another tag first.',
      });
    }
    ledger.removeTags(templateId, [...tags]);
  }

  recordSpawn(templateId: string): void {
    this.#options.ledger.recordSpawn(templateId, new Date(this.#options.clock.now()));
  }

  #whole(reference: TemplateReference): Template {
    const { ledger, namespace } = this.#options;
    const ours = reference.namespace === undefined || reference.namespace === namespace;
    const byId = reference.namespace === undefined ? ledger.get(reference.name) : undefined;
    const template = byId ?? (ours ? ledger.byAlias(reference.name) : undefined);
    if (template !== undefined) return template;
    throw new AenvError('template_not_found', `template '${reference.shown}' not found`);
  }
}
