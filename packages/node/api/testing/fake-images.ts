import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { BuildIds, BuildState, LogQuery } from '../../templates/builds/contract.ts';
import type { ImageBuild, ImageTemplates, NewTemplate } from '../../templates/pull/contract.ts';

/** Notes what it is asked for; one build, in the state that a test sets. */
export class FakeImages implements ImageTemplates {
  readonly ordered: NewTemplate[] = [];
  readonly started: (readonly [BuildIds, ImageBuild])[] = [];
  readonly cold: (readonly [string, Omit<NewTemplate, 'alias'>])[] = [];
  readonly removed: string[] = [];
  /** thrown by the next `start` or `remove` */
  failure: unknown;
  current: BuildState = { templateId: 't1', buildId: 'b1', status: 'waiting', entries: [] };

  startBuiltin(): BuildIds {
    throw new AenvError('template_not_found', 'there is none');
  }

  create(wanted: NewTemplate): BuildIds {
    this.ordered.push(wanted);
    return { templateId: 't1', buildId: 'b1' };
  }

  start(ids: BuildIds, build: ImageBuild): void {
    if (this.failure !== undefined) throw this.failure;
    this.started.push([ids, build]);
  }

  state(_templateId: string, buildId: string, _query: LogQuery): BuildState {
    if (buildId === this.current.buildId) return this.current;
    throw new AenvError('template_not_found', `build '${buildId}' not found`);
  }

  async prepareCold(image: string, sizes: Omit<NewTemplate, 'alias'>): Promise<string> {
    if (this.failure !== undefined) throw this.failure;
    this.cold.push([image, sizes]);
    return 'template000000000000';
  }

  /** ids of templates of which there are builds only */
  readonly failed = new Set<string>();

  forget(templateId: string): boolean {
    return this.failed.delete(templateId);
  }

  remove(reference: string): void {
    if (this.failure !== undefined) throw this.failure;
    this.removed.push(reference);
  }
}
