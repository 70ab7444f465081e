import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { TemplateLedger } from '../store/template-ledger.ts';
import type { Template, TemplateService } from './contract.ts';
import { DEFAULT_TAG, parseTemplateReference } from './reference.ts';

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
    const { ledger, namespace } = this.#options;
    const reference = parseTemplateReference(text);
    const ours = reference.namespace === undefined || reference.namespace === namespace;
    const byId = reference.namespace === undefined ? ledger.get(reference.name) : undefined;
    const template = byId ?? (ours ? ledger.byAlias(reference.name) : undefined);
    if (template === undefined) {
      throw new AenvError('template_not_found', `template '${reference.shown}' not found`);
    }
    if (reference.tag !== DEFAULT_TAG) {
      throw new AenvError(
        'template_not_found',
        `tag '${reference.tag}' does not exist for template '${reference.shown}'`,
      );
    }
    return template;
  }

  recordSpawn(templateId: string): void {
    this.#options.ledger.recordSpawn(templateId, new Date(this.#options.clock.now()));
  }
}
