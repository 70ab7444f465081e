import type { BuildLogEntry, BuildLogLevel } from './build-log.ts';

/** A build by the ids that E2B's clients ask with. */
export interface BuildIds {
  readonly templateId: string;
  readonly buildId: string;
}

export interface BuildState extends BuildIds {
  /** `waiting`: ordered, and not started yet */
  readonly status: 'waiting' | 'building' | 'ready' | 'error';
  readonly entries: readonly BuildLogEntry[];
  /** why it failed */
  readonly reason?: string;
}

/** Which log entries of a build are wanted. */
export interface LogQuery {
  /** entries of that level and above to leave out, counted from the first */
  readonly offset: number;
  readonly limit: number;
  /** the least level; default all */
  readonly level?: BuildLogLevel | undefined;
}

/** Builds of templates, each of which runs to its end whoever asks about it. */
export interface TemplateBuilds {
  /**
   * Builds one of the templates that the product brings. One that is being built already is joined.
   * @throws AenvError `template_not_found` for another name
   */
  startBuiltin(name: string): BuildIds;
  /** @throws AenvError `template_not_found` when there is no such build */
  state(templateId: string, buildId: string, query: LogQuery): BuildState;
}
